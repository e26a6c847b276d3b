"""The interface that every tokenizer of the package keeps."""

from __future__ import annotations

import abc
import functools
import operator
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from keras_arch.text.folder import read_folder, write_folder
from keras_arch.text.literals import Literals
from keras_arch.text.places import Places
from keras_arch.text.special_tokens import check_special_tokens

if TYPE_CHECKING:
    import tensorflow as tf

REPLACEMENT = "\ufffd"


class Tokenizer(abc.ABC):
    """Turns text into token ids and back, in Python and inside a TensorFlow graph.

    Ids run from 0 to `vocabulary_size - 1`; no method ever returns another one. `encode` and
    `decode` need no TensorFlow; the `_tensor` methods and `resources` import it when first used
    and work in `tf.data`, in a `tf.function` and in a SavedModel that tracks `resources`.

    A special token's name inside a text is plain text, unless `parse_special=True` says that
    the text may name special tokens. A special token decodes to its name.

    A subclass gives `name`, `vocabulary_size`, `special_ids`, `decode`, `decode_tensor`,
    `_encode`, `_encode_tensor`, `_settings` and `_from_parts`; and, where it has them,
    `resources` and `FILES` with `_files`.

    Args:
        special_tokens: Role to name; see `special_ids`. Two roles may share a token.
    """

    name: str
    FILES: tuple[str, ...] = ()  # What the folder holds beside tokenizer.json.
    takes_space: tuple[str, ...] = ()  # Special tokens that take the white space before them.

    def __init__(self, special_tokens: Mapping[str, str]):
        self.special_tokens = check_special_tokens(special_tokens)

    @property
    @abc.abstractmethod
    def vocabulary_size(self) -> int:
        """Number of token ids."""

    @property
    @abc.abstractmethod
    def special_ids(self) -> dict[str, int]:
        """Ids with a role instead of a spelling, by role.

        `"unknown"`: what is not in the vocabulary; `"begin"` and `"end"`: of a document;
        `"pad"`; `"mask"`; `"separator"`: between two texts in one row; `"classification"`: whose
        state stands for the row. A tokenizer has the roles that it was given, also others.
        """

    @property
    def start_id(self) -> int | None:
        """What an empty prompt starts from: the `"begin"` or else the `"end"` id, or None."""
        return self.special_ids.get("begin", self.special_ids.get("end"))

    @property
    def edge_ids(self) -> tuple[int | None, int | None]:
        """What an encoder's row begins and ends with, or None where there is no such token.

        The `"classification"` or else the `"begin"` id; the `"separator"` or else the `"end"` id.
        """
        ids = self.special_ids
        first, last = ids.get("begin"), ids.get("end")
        return ids.get("classification", first), ids.get("separator", last)

    @property
    def resources(self) -> list:
        """TensorFlow objects that an export must track for the `_tensor` methods to work."""
        return []

    def encode(self, text: str, parse_special: bool = False) -> list[int]:
        """Returns the token ids of a text; `[]` for `""`.

        Args:
            text: Any text.
            parse_special: Whether the name of a special token gives that token's id. Only for
                texts whose author may use them: a template, not what a user typed.

        Raises:
            ValueError: If the text is no string, or holds half of a surrogate pair and the
                tokenizer has no unknown token for it.
        """
        if not isinstance(text, str):
            raise ValueError(f"text must be a string; received text={text!r}.")
        return self._named.encode(text, self._encode) if parse_special else self._encode(text)

    @abc.abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """Returns the text of token ids.

        Raises:
            ValueError: If an id is no integer or outside the vocabulary.
        """

    def encode_tensor(self, texts: tf.Tensor, parse_special: bool = False) -> tf.RaggedTensor:
        """Encodes a batch inside a graph, to the ids that `encode` gives.

        Args:
            texts: string `[B]`. Bytes that are not UTF-8 are read as U+FFFD.
            parse_special: As for `encode`.

        Returns:
            Ragged int32 `[B, None]`.
        """
        if parse_special:
            return self._named.encode_tensor(texts, self._encode_tensor)
        return self._encode_tensor(texts)

    @abc.abstractmethod
    def decode_tensor(self, ids: tf.RaggedTensor | tf.Tensor) -> tf.Tensor:
        """Decodes a batch inside a graph.

        Args:
            ids: int `[B, T]`, dense or ragged. All of them are decoded: drop pads before.

        Returns:
            string `[B]`, always valid UTF-8.
        """

    def locate(self, text: str) -> Places:
        """Encodes a text and says where in it each token stands.

        Raises:
            ValueError: If the tokenizer cannot tell: WordPiece and byte pairs can.
        """
        raise self._cannot_locate()

    def locate_tensor(self, texts: tf.Tensor) -> Places:
        """Does inside a graph what `locate` does, for string `[B]`.

        Places in bytes that are not UTF-8 are those in the text with U+FFFD instead.
        """
        raise self._cannot_locate()

    def save(self, folder: str | os.PathLike) -> None:
        """Writes `tokenizer.json` and what belongs to it into a folder, made when missing."""
        write_folder(folder, {"tokenizer": self.name, **self._settings()}, self._files())

    @classmethod
    def load(cls, folder: str | os.PathLike) -> Tokenizer:
        """Reads what `save` wrote. Nothing in the folder is executed.

        Raises:
            FileNotFoundError: If a file is missing.
            ValueError: If a file is damaged.
        """
        settings, files = read_folder(folder, cls.FILES)
        try:
            return cls._from_parts(settings, files)
        except (TypeError, ValueError) as error:  # JSON may hold anything.
            raise ValueError(f"{folder} holds no {cls.name} tokenizer: {error}") from error

    def check_ids(self, ids: Sequence[int]) -> list[int]:
        """Returns ids as plain integers.

        Raises:
            ValueError: If an id is no integer or outside the vocabulary.
        """
        try:
            ids = [operator.index(token) for token in ids]
        except TypeError as error:
            raise ValueError(f"ids must be a list of integers; received ids={ids!r}.") from error
        for position, token in enumerate(ids):
            if not 0 <= token < self.vocabulary_size:
                raise ValueError(
                    f"ids must lie between 0 and {self.vocabulary_size - 1}; "
                    f"received ids[{position}]={token}."
                )
        return ids

    def _cannot_locate(self):
        return ValueError(
            "tokenizer must tell where its tokens stand, as WordPiece and byte pairs do; received "
            f"a {type(self).__name__}."
        )

    @functools.cached_property
    def _named(self) -> Literals:
        ids = self.special_ids
        named = {token: [ids[role]] for role, token in self.special_tokens.items()}
        return Literals(named, self.takes_space)

    @abc.abstractmethod
    def _encode(self, text: str) -> list[int]:
        """Encodes a text in which nothing is special."""

    @abc.abstractmethod
    def _encode_tensor(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Encodes texts in which nothing is special."""

    @abc.abstractmethod
    def _settings(self) -> dict:
        """Returns what `tokenizer.json` holds."""

    def _files(self) -> dict[str, bytes]:
        """Returns the contents of `FILES`."""
        return {}

    @classmethod
    @abc.abstractmethod
    def _from_parts(cls, settings: dict, files: dict[str, bytes]) -> Tokenizer:
        """Makes a tokenizer of the contents of a folder, which may be anything."""
