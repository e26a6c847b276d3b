"""Decoding by joining the bytes that each token stands for."""

from __future__ import annotations

from collections.abc import Sequence

from keras_arch.text.tokenizer import Tokenizer


class SpellingTokenizer(Tokenizer):
    """A tokenizer whose tokens stand for bytes: the text of ids is their bytes, joined.

    A subclass sets `_spellings`, the bytes of each id. Bytes that are not UTF-8 become U+FFFD.
    """

    _spellings: Sequence[bytes]
    # Whether each text is encoded behind a space of the tokenizer's own.
    _begins_with_space = False

    @property
    def vocabulary_size(self) -> int:
        """Number of tokens."""
        return len(self._spellings)

    def decode(self, ids: Sequence[int]) -> str:
        """Returns the text of ids; bytes that are not UTF-8 become U+FFFD."""
        spelling = b"".join(self._spellings[token] for token in self.check_ids(ids))
        text = spelling.decode("utf-8", errors="replace")
        return text.removeprefix(" ") if self._begins_with_space else text

    def decode_tensor(self, ids):
        """Decodes dense or ragged int `[B, T]` to string `[B]`, inside a graph."""
        import tensorflow as tf

        texts = tf.strings.reduce_join(tf.gather(tf.constant(self._spellings), ids), axis=-1)
        texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
        return tf.strings.regex_replace(texts, r"\A ", "") if self._begins_with_space else texts
