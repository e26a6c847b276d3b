"""A tokenizer whose tokens are single characters."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from keras_arch.text.tokenizer import REPLACEMENT, Tokenizer


class CharacterTokenizer(Tokenizer):
    """One token per character (Unicode code point); id 0 stands for every unknown character.

    `decode(encode(text))` is `text`, with U+FFFD in the place of unknown characters.

    Args:
        characters: The known characters, distinct; `characters[i]` gets id `i + 1`.
    """

    name = "characters"

    def __init__(self, characters: Sequence[str]):
        super().__init__({})
        self.characters = tuple(characters)
        if not self.characters:
            raise ValueError("characters must not be empty.")
        for character in self.characters:
            if len(character) != 1 or "\ud800" <= character <= "\udfff":
                raise ValueError(
                    "characters must be single Unicode characters; "
                    f"received characters with {character!r}."
                )
        self._ids = {character: i for i, character in enumerate(self.characters, start=1)}
        if len(self._ids) != len(self.characters):
            raise ValueError(
                f"characters must be distinct; received {len(self.characters)} characters, "
                f"{len(self._ids)} of them distinct."
            )
        self._spellings = (REPLACEMENT, *self.characters)

    @classmethod
    def from_text(cls, text: str) -> CharacterTokenizer:
        """Makes a tokenizer that knows the characters of a text, in the order of code points.

        Raises:
            ValueError: If the text is empty.
        """
        if not text:
            raise ValueError("text must not be empty; received text=''.")
        return cls(sorted(set(text)))

    @property
    def vocabulary_size(self) -> int:
        """Number of known characters, and one for the unknown."""
        return len(self._spellings)

    @property
    def special_ids(self) -> dict[str, int]:
        """`{"unknown": 0}`."""
        return {"unknown": 0}

    @property
    def resources(self) -> list:
        """The lookup table from characters to ids."""
        return [self._table]

    def decode(self, ids: Sequence[int]) -> str:
        """Returns the characters of ids, U+FFFD for id 0."""
        return "".join(self._spellings[token] for token in self.check_ids(ids))

    def decode_tensor(self, ids):
        """Decodes dense or ragged int `[B, T]` to string `[B]`, inside a graph."""
        import tensorflow as tf

        return tf.strings.reduce_join(tf.gather(tf.constant(self._spellings), ids), axis=-1)

    def _encode(self, text):
        return [self._ids.get(character, 0) for character in text]

    def _encode_tensor(self, texts):
        import tensorflow as tf

        return self._table.lookup(tf.strings.unicode_split(texts, "UTF-8", errors="replace"))

    def _settings(self):
        return {"characters": "".join(self.characters)}

    @classmethod
    def _from_parts(cls, settings, files):
        characters = settings.get("characters")
        if not isinstance(characters, str):
            raise ValueError(f"characters must be a string; received {characters!r}.")
        return cls(characters)

    @functools.cached_property
    def _table(self):
        import tensorflow as tf

        # The first call may come while a graph is traced; the table must outlive that graph.
        with tf.init_scope():
            pairs = tf.lookup.KeyValueTensorInitializer(
                tf.constant(self.characters), tf.range(1, self.vocabulary_size)
            )
            return tf.lookup.StaticHashTable(pairs, default_value=0)
