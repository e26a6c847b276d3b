"""BERT's words and WordPiece inside a TensorFlow graph, by tensorflow_text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf
import tensorflow_text

from keras_arch.text.bert_words import IDEOGRAPHS

IDEOGRAPH = "[" + "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in IDEOGRAPHS) + "]"
BYTES_PER_CHARACTER = 4
NOTHING = -1


class WordPieceGraph:
    """WordPiece of string tensors.

    Args:
        pieces: Pieces by id; those that no text may give begin with a space.
        unknown: The piece for words that cannot be spelt.
        table: Code point to replacement; see `BertWords.table`.
        longest_word: Most characters of a word that is not unknown.
    """

    def __init__(
        self,
        pieces: Sequence[str],
        unknown: str,
        table: Mapping[int, str],
        longest_word: int,
    ):
        self._longest_word = longest_word
        self._codes = np.array(sorted(table), np.int32)
        width = max(map(len, table.values()))
        self._replacements = np.full([len(table), width], NOTHING, np.int32)
        for row, code in enumerate(self._codes):
            self._replacements[row, : len(table[code])] = [ord(new) for new in table[code]]
        self._tokenizer = tensorflow_text.FastWordpieceTokenizer(
            list(pieces),
            max_bytes_per_word=BYTES_PER_CHARACTER * longest_word,
            token_out_type=tf.int32,
            unknown_token=unknown,
            no_pretokenization=True,
        )

    def encode(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Encodes string `[B]` to ragged int32 `[B, None]`."""
        words = self.split_words(texts)
        lengths = tf.strings.length(words.flat_values, unit="UTF8_CHAR")
        # A space is no piece, and no piece of a word.
        known = tf.where(lengths <= self._longest_word, words.flat_values, " ")
        return words.with_flat_values(self._tokenizer.tokenize(known)).merge_dims(1, 2)

    def split_words(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Splits string `[B]` into BERT's words, ragged string `[B, None]`."""
        texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
        texts = tf.strings.regex_replace(texts, IDEOGRAPH, r" \0 ")
        codes = tf.strings.unicode_decode(texts, "UTF-8")
        return tf.strings.split(tf.strings.unicode_encode(self._replace(codes), "UTF-8"))

    def _replace(self, codes):
        flat = codes.flat_values
        row = tf.searchsorted(tf.constant(self._codes), flat)
        row = tf.minimum(row, len(self._codes) - 1)
        changed = tf.gather(tf.constant(self._codes), row) == flat
        kept = tf.pad(flat[:, None], [[0, 0], [0, self._replacements.shape[1] - 1]])
        kept = tf.where(tf.range(self._replacements.shape[1]) == 0, kept, NOTHING)
        new = tf.gather(tf.constant(self._replacements), row)
        new = tf.where(changed[:, None], new, kept)
        exists = new != NOTHING
        counts = codes.with_flat_values(tf.math.count_nonzero(exists, axis=1, dtype=tf.int64))
        return tf.RaggedTensor.from_row_lengths(new[exists], tf.reduce_sum(counts, axis=1))
