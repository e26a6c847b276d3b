"""A tokenizer whose tokens are bytes."""

from __future__ import annotations

from collections.abc import Mapping

from keras_arch.text.special_tokens import END_OF_TEXT, check_text, distinct
from keras_arch.text.spellings import SpellingTokenizer


class ByteTokenizer(SpellingTokenizer):
    """One token per byte of the text's UTF-8, whose id is its value: any text, no unknown token.

    `decode(encode(text))` is `text`, always. The special tokens follow, from id 256 on.

    Args:
        special_tokens: Role to name.

    Source: Xue et al. 2022, "ByT5", section 3.1, but for the order of the ids.
    """

    name = "bytes"

    def __init__(self, special_tokens: Mapping[str, str] = END_OF_TEXT):
        super().__init__(special_tokens)
        names = distinct(self.special_tokens)
        self._spellings = [bytes([byte]) for byte in range(256)]
        self._spellings += [name.encode("utf-8") for name in names]
        self._special_ids = {
            role: 256 + names.index(name) for role, name in self.special_tokens.items()
        }

    @property
    def special_ids(self) -> dict[str, int]:
        """Ids from 256 on, by role."""
        return dict(self._special_ids)

    def _encode(self, text):
        return list(check_text(text).encode("utf-8"))

    def _encode_tensor(self, texts):
        import tensorflow as tf

        texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
        # Latin-1 reads every byte as one code point.
        return tf.strings.unicode_decode(texts, "ISO-8859-1")

    def _settings(self):
        return {"special_tokens": self.special_tokens}

    @classmethod
    def _from_parts(cls, settings, files):
        return cls(settings.get("special_tokens"))
