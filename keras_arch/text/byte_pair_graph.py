"""Byte-level byte-pair encoding inside a TensorFlow graph, by core operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from keras_arch.text.byte_pair_words import Pattern
from keras_arch.text.byte_symbols import SYMBOLS
from keras_arch.text.literals import CUT
from keras_arch.text.places import Places, ragged_places

NO_RANK = np.iinfo(np.int32).max


class BytePairGraph:
    """Byte-pair encoding of string tensors.

    All words of a batch are merged at once, as long arrays; keras_nlp's tokenizer, which loops
    over strings and keeps every word it has seen, is slower and grows without end.

    Args:
        vocabulary: Token to id; tokens are spelt in byte symbols.
        merges: Pairs of tokens, the most frequent first.
        pattern: How texts are split into words.
        composes: Whether characters are composed before.
        words: Words that are one token though merges do not lead to it -> id.
    """

    def __init__(
        self,
        vocabulary: Mapping[str, int],
        merges: Sequence[tuple[str, str]],
        pattern: Pattern,
        composes: bool,
        words: Mapping[bytes, int],
    ):
        self._pattern, self._composes = pattern, composes
        self._words = sorted(words)
        self._word_ids = np.array([words[word] for word in self._words], np.int32)
        self._bytes = np.array([vocabulary[symbol] for symbol in SYMBOLS], np.int32)
        self._size = max(vocabulary.values()) + 1
        keys = [vocabulary[left] * self._size + vocabulary[right] for left, right in merges]
        # One more key, above all pairs, so that every search finds a place.
        keys = np.array([*keys, np.iinfo(np.int64).max], np.int64)
        order = np.argsort(keys)
        self._keys = keys[order]
        self._ranks = order.astype(np.int32)
        merged = [vocabulary[left + right] for left, right in merges]
        self._merged = np.array([*merged, 0], np.int32)[order]

    def encode(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Encodes string `[B]` to ragged int32 `[B, None]`."""
        words = split_words(texts, self._pattern, self._composes)
        return self._encode_texts(words).merge_dims(1, 2)

    def locate(self, texts: tf.Tensor, spellings: Sequence[bytes]) -> Places:
        """Encodes string `[B]` and says where each token stands; see `Tokenizer.locate`.

        Args:
            texts: string `[B]`.
            spellings: The bytes of each id.
        """
        words = split_words(texts, self._pattern)
        tokens = self._encode_texts(words)
        spelt = tf.gather(tf.constant(spellings), tokens.flat_values)
        lengths = tf.strings.length(spelt)
        ends = tf.cumsum(lengths)
        space = (tf.strings.substr(spelt, 0, 1) == " ") & (lengths > 1)
        starts = ends - lengths + tf.cast(space, tf.int32)
        # Joined, the words are the text: of each of its bytes, the character it belongs to.
        codes = tf.strings.unicode_decode(words, "ISO-8859-1").merge_dims(1, 2)
        begins = codes.with_flat_values(tf.bitwise.bitwise_and(codes.flat_values, 0xC0) != 0x80)
        count = tf.cumsum(tf.cast(begins.flat_values, tf.int32))
        earlier = tf.concat([[0], count], axis=0)
        first = tf.gather(earlier, tf.gather(codes.row_starts(), codes.value_rowids()))
        characters = count - 1 - first
        starts, ends = tf.gather(characters, starts), tf.gather(characters, ends - 1) + 1
        return ragged_places(tokens, starts, ends)

    def _encode_texts(self, words):
        """Encodes ragged words `[B, None]` to ragged int32 `[B, None, None]`."""
        distinct, index = tf.unique(words.flat_values)
        return words.with_flat_values(tf.gather(self._encode_words(distinct), index))

    def _encode_words(self, words):
        """Encodes distinct string `[W]` to ragged int32 `[W, None]`."""
        merged = self._merge_words(words)
        if not self._words:
            return merged
        # Of strings that come twice, `tf.unique` gives the place of the first.
        count = len(self._words)
        _, place = tf.unique(tf.concat([self._words, words], axis=0))
        whole = place[count:] < count
        ids = tf.gather(self._word_ids, tf.where(whole, place[count:], 0))
        ids = tf.RaggedTensor.from_row_lengths(ids[whole], tf.cast(whole, tf.int64))
        merged = tf.ragged.boolean_mask(merged, ~_each(whole, merged))
        return tf.concat([ids, merged], axis=1)

    def _merge_words(self, words):
        """Merges string `[W]` from its bytes on to ragged int32 `[W, None]`."""
        # Latin-1 reads every byte as one code point.
        codes = tf.strings.unicode_decode(words, "ISO-8859-1")
        count = codes.nrows()
        tokens, rows, _ = tf.while_loop(
            lambda tokens, rows, unfinished: unfinished,
            lambda tokens, rows, unfinished: self._merge(tokens, rows, count),
            (tf.gather(tf.constant(self._bytes), codes.flat_values), codes.value_rowids(), True),
            (tf.TensorShape([None]), tf.TensorShape([None]), tf.TensorShape([])),
        )
        return tf.RaggedTensor.from_value_rowids(tokens, rows, count, validate=False)

    def _merge(self, tokens, rows, count):
        """Merges in every row the pair of the lowest rank, wherever it stands.

        Returns the new tokens, their rows, and whether anything was merged.
        """
        index = tf.range(tf.size(tokens))
        in_row = (index < tf.size(tokens) - 1) & (rows == tf.roll(rows, -1, 0))
        key = tf.cast(tokens, tf.int64) * self._size + tf.cast(tf.roll(tokens, -1, 0), tf.int64)
        keys = tf.constant(self._keys)
        place = tf.searchsorted(keys, key)
        known = in_row & (tf.gather(keys, place) == key)
        rank = tf.where(known, tf.gather(tf.constant(self._ranks), place), NO_RANK)
        lowest = tf.math.unsorted_segment_min(rank, rows, count)
        found = known & (rank == tf.gather(lowest, rows))
        # Of pairs that overlap, as in "aaa", the first, the third and so on are merged.
        before = tf.concat([[-1], tf.cast(tf.where(~found)[:, 0], tf.int32)], axis=0)
        place_in_run = index - tf.gather(before, tf.cumsum(tf.cast(~found, tf.int32))) - 1
        merged = found & (place_in_run % 2 == 0)
        tokens = tf.where(merged, tf.gather(tf.constant(self._merged), place), tokens)
        kept = ~tf.roll(merged, 1, 0)
        return tokens[kept], rows[kept], tf.reduce_any(found)


def _each(rows, values):
    """Returns for each of ragged values `[W, None]` what `[W]` says of its row."""
    return values.with_flat_values(tf.gather(rows, values.value_rowids()))


def split_words(texts: tf.Tensor, pattern: Pattern, composes: bool = False) -> tf.RaggedTensor:
    """Splits string `[B]` into words, ragged string `[B, None]`.

    Joined, the words are the text, composed if asked, but for bytes that are not UTF-8, which
    become U+FFFD.
    Letters and digits are those of RE2's Unicode tables; a newer character may split otherwise
    than in the `tokenizers` package, and decodes to the same text all the same.
    """
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
    if composes:
        import tensorflow_text  # The rest is core operations.

        texts = tensorflow_text.normalize_utf8(texts, "NFC")
    texts = tf.strings.regex_replace(texts, pattern.last_space, CUT + rb"\1\2")
    texts = tf.strings.regex_replace(texts, pattern.words, rb"\0" + CUT)
    words = tf.strings.split(texts, sep=CUT)
    return tf.ragged.boolean_mask(words, words != "")
