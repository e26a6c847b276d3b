"""BERT's words and WordPiece inside a TensorFlow graph, by tensorflow_text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf
import tensorflow_text

from keras_arch.text.bert_words import IDEOGRAPHS, PRIVATE
from keras_arch.text.places import Places, columns, ragged_places
from keras_arch.text.word_joiner import CONTINUATION

BYTES_PER_CHARACTER = 4
NOTHING = -1
SPACE = 0x20


class WordPieceGraph:
    """WordPiece of string tensors.

    Args:
        pieces: Pieces by id; those that no text may give begin with a space.
        unknown: The piece for words that cannot be spelt.
        table: Code point to replacement; see `BertWords.table`.
        part_ideographs: Whether an ideograph is a word by itself.
        longest_word: Most characters of a word that is not unknown.
    """

    def __init__(
        self,
        pieces: Sequence[str],
        unknown: str,
        table: Mapping[int, str],
        part_ideographs: bool,
        longest_word: int,
    ):
        self._part_ideographs = part_ideographs
        self._longest_word = longest_word
        self._unknown = pieces.index(unknown)
        self._lengths = np.array([len(piece.removeprefix(CONTINUATION)) for piece in pieces])
        self._codes = np.array(sorted(table), np.int32)
        width = max(map(len, table.values()))
        self._replacements = np.full([len(table), width], NOTHING, np.int32)
        for row, code in enumerate(self._codes):
            self._replacements[row, : len(table[code])] = [ord(new) for new in table[code]]
        # A graph may be traced now, which the tensors inside must outlive.
        with tf.init_scope():
            self._tokenizer = tensorflow_text.FastWordpieceTokenizer(
                list(pieces),
                max_bytes_per_word=BYTES_PER_CHARACTER * longest_word,
                token_out_type=tf.int32,
                unknown_token=unknown,
                no_pretokenization=True,
            )

    def encode(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Encodes string `[B]` to ragged int32 `[B, None]`."""
        return self._encode_words(self.split_words(texts)).merge_dims(1, 2)

    def locate(self, texts: tf.Tensor) -> Places:
        """Encodes string `[B]` and says where each token stands; see `Tokenizer.locate`."""
        codes, sources = self._spread(texts)
        words = _split(codes)
        tokens = self._encode_words(words)
        ids, word = tokens.flat_values, tokens.values.value_rowids()
        whole = tf.gather(tf.strings.length(words.flat_values, unit="UTF8_CHAR"), word)
        lengths = tf.gather(tf.constant(self._lengths, tf.int32), ids)
        lengths = tf.where(ids == self._unknown, whole, lengths)
        # The tokens of all words, one after the other, are all characters but the spaces.
        sources = tf.boolean_mask(sources, codes.flat_values != SPACE)
        ends = tf.cumsum(lengths)
        starts, ends = tf.gather(sources, ends - lengths), tf.gather(sources, ends - 1) + 1
        return ragged_places(tokens, starts, ends)

    def split_words(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Splits string `[B]` into BERT's words, ragged string `[B, None]`."""
        return _split(self._spread(texts)[0])

    def _encode_words(self, words):
        """Encodes ragged words `[B, None]` to ragged int32 `[B, None, None]`."""
        lengths = tf.strings.length(words.flat_values, unit="UTF8_CHAR")
        # A space is no piece, and no piece of a word.
        known = tf.where(lengths <= self._longest_word, words.flat_values, " ")
        return words.with_flat_values(self._tokenizer.tokenize(known))

    def _spread(self, texts):
        """Replaces every character of string `[B]`.

        Returns the new code points, ragged `[B, None]`, and of each the column of the old one.
        """
        texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
        codes = tf.strings.unicode_decode(texts, "UTF-8")
        new = self._replace(codes.flat_values)
        exists = new != NOTHING
        counts = codes.with_flat_values(tf.math.count_nonzero(exists, axis=1, dtype=tf.int64))
        spread = tf.RaggedTensor.from_row_lengths(new[exists], tf.reduce_sum(counts, axis=1))
        return spread, tf.gather(columns(codes), tf.where(exists)[:, 0])

    def _replace(self, codes):
        """Returns what code points `[n]` become, `[n, most]`, `NOTHING` behind it."""
        most = self._replacements.shape[1]
        row = tf.searchsorted(tf.constant(self._codes), codes)
        row = tf.minimum(row, len(self._codes) - 1)
        changed = tf.gather(tf.constant(self._codes), row) == codes
        kept = tf.pad(codes[:, None], [[0, 0], [0, most - 1]], constant_values=NOTHING)
        parted = tf.pad(codes[:, None], [[0, 0], [1, 1]], constant_values=SPACE)
        parted = tf.pad(parted, [[0, 0], [0, most - 3]], constant_values=NOTHING)
        if self._part_ideographs:
            kept = tf.where(_within(codes, IDEOGRAPHS)[:, None], parted, kept)
        kept = tf.where(_within(codes, PRIVATE)[:, None], NOTHING, kept)
        return tf.where(changed[:, None], tf.gather(tf.constant(self._replacements), row), kept)


def _split(codes):
    """Splits ragged code points `[B, None]` at spaces into words, ragged string `[B, None]`."""
    return tf.strings.split(tf.strings.unicode_encode(codes, "UTF-8"))


def _within(codes, ranges):
    """Returns whether code points `[n]` lie in one of the ranges, which ascend; bool `[n]`."""
    bounds = [bound for first, last in ranges for bound in (first, last + 1)]
    return tf.searchsorted(tf.constant(bounds), codes, side="right") % 2 == 1
