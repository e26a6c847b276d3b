"""A tokenizer whose tokens are Unicode code points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from keras_arch.text.special_tokens import END_OF_TEXT, distinct
from keras_arch.text.tokenizer import REPLACEMENT, Tokenizer

UNICODE_SIZE = 0x110000


class UnicodeTokenizer(Tokenizer):
    """One token per character, whose id is its code point; needs no training.

    Code points from `code_points` on, and halves of surrogate pairs, have the unknown id,
    `code_points`, which decodes to U+FFFD; so with the default `decode(encode(text))` is `text`,
    and an embedding has 1.1 million rows. 0x250 holds the Latin scripts, 0x10000 nearly
    every script in use, 0x20000 emoji, too. The special tokens follow the unknown id.

    Args:
        code_points: Number of code points that have ids of their own, at most 0x110000.
        special_tokens: Role to name, without `"unknown"`.
    """

    name = "unicode"

    def __init__(
        self,
        code_points: int = UNICODE_SIZE,
        special_tokens: Mapping[str, str] = END_OF_TEXT,
    ):
        super().__init__(special_tokens)
        whole = isinstance(code_points, int) and not isinstance(code_points, bool)
        if not whole or not 1 <= code_points <= UNICODE_SIZE:
            raise ValueError(
                f"code_points must be an integer between 1 and {UNICODE_SIZE}; "
                f"received code_points={code_points!r}."
            )
        if "unknown" in self.special_tokens:
            raise ValueError(
                "special_tokens must not name the unknown token, which decodes to U+FFFD; "
                f"received special_tokens={self.special_tokens}."
            )
        self.code_points = code_points
        self._names = [REPLACEMENT, *distinct(self.special_tokens)]
        self._special_ids = {
            role: code_points + self._names.index(name, 1)
            for role, name in self.special_tokens.items()
        }

    @property
    def vocabulary_size(self) -> int:
        """The code points, one id for the unknown, and the special tokens."""
        return self.code_points + len(self._names)

    @property
    def special_ids(self) -> dict[str, int]:
        """The unknown id and those of the special tokens, by role."""
        return {"unknown": self.code_points, **self._special_ids}

    def decode(self, ids: Sequence[int]) -> str:
        """Returns the characters of ids, U+FFFD for those that are none."""
        return "".join(map(self._spelling, self.check_ids(ids)))

    def decode_tensor(self, ids):
        """Decodes dense or ragged int `[B, T]` to string `[B]`, inside a graph."""
        import tensorflow as tf

        flat = tf.cast(ids.flat_values if isinstance(ids, tf.RaggedTensor) else ids, tf.int32)
        inside = (flat >= 0) & (flat < self.vocabulary_size)
        message = f"ids must lie between 0 and {self.vocabulary_size - 1}"
        with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(inside), [message])]):
            special = tf.maximum(flat - self.code_points, 0)
        names = tf.gather(tf.constant(self._names), special)
        codes = tf.where(flat < self.code_points, flat, 0)
        characters = tf.strings.unicode_encode(codes[..., None], "UTF-8", errors="replace")
        spellings = tf.where(flat < self.code_points, characters, names)
        if isinstance(ids, tf.RaggedTensor):
            spellings = ids.with_flat_values(spellings)
        return tf.strings.reduce_join(spellings, axis=-1)

    def _spelling(self, token):
        if token >= self.code_points:
            return self._names[token - self.code_points]
        return REPLACEMENT if 0xD800 <= token <= 0xDFFF else chr(token)

    def _encode(self, text):
        unknown = self.code_points
        return [
            code if code < unknown and not 0xD800 <= code <= 0xDFFF else unknown
            for code in map(ord, text)
        ]

    def _encode_tensor(self, texts):
        import tensorflow as tf

        codes = tf.strings.unicode_decode(texts, "UTF-8", errors="replace")
        return tf.minimum(codes, self.code_points)

    def _settings(self):
        return {"code_points": self.code_points, "special_tokens": self.special_tokens}

    @classmethod
    def _from_parts(cls, settings, files):
        return cls(settings.get("code_points"), settings.get("special_tokens"))
