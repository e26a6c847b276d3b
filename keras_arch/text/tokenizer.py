"""The interface that every tokenizer of the package keeps."""

from __future__ import annotations

import abc
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf

SETTINGS_FILE = "tokenizer.json"


class Tokenizer(abc.ABC):
    """Turns text into token ids and back, in Python and inside a TensorFlow graph.

    Ids run from 0 to `vocabulary_size - 1`; no method ever returns another one. `encode` and
    `decode` need no TensorFlow; the `_tensor` methods and `resources` import it when first used
    and work in `tf.data`, in a `tf.function` and in a SavedModel that tracks `resources`.
    """

    @property
    @abc.abstractmethod
    def vocabulary_size(self) -> int:
        """Number of token ids."""

    @property
    @abc.abstractmethod
    def special_ids(self) -> dict[str, int]:
        """Ids with a role instead of a spelling, by role: `"unknown"`, `"end"`."""

    @property
    def start_id(self) -> int | None:
        """What an empty prompt starts from: the `"begin"` or else the `"end"` id, or None."""
        return self.special_ids.get("begin", self.special_ids.get("end"))

    @property
    @abc.abstractmethod
    def resources(self) -> list:
        """TensorFlow objects that an export must track for the `_tensor` methods to work."""

    @abc.abstractmethod
    def encode(self, text: str) -> list[int]:
        """Returns the token ids of a text; `[]` for `""`."""

    @abc.abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """Returns the text of token ids.

        Raises:
            ValueError: If an id is outside the vocabulary.
        """

    @abc.abstractmethod
    def encode_tensor(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Encodes a batch inside a graph.

        Args:
            texts: string `[B]`. Bytes that are not UTF-8 are read as U+FFFD.

        Returns:
            Ragged int32 `[B, None]`.
        """

    @abc.abstractmethod
    def decode_tensor(self, ids: tf.RaggedTensor | tf.Tensor) -> tf.Tensor:
        """Decodes a batch inside a graph.

        Args:
            ids: int `[B, T]`, dense or ragged. All of them are decoded: drop pads before.

        Returns:
            string `[B]`, always valid UTF-8.
        """

    @abc.abstractmethod
    def save(self, folder: str | os.PathLike) -> None:
        """Writes `tokenizer.json` and what belongs to it into a folder, made when missing."""

    @classmethod
    @abc.abstractmethod
    def load(cls, folder: str | os.PathLike) -> Tokenizer:
        """Reads what `save` wrote. Nothing in the folder is executed."""

    def check_ids(self, ids: Sequence[int]) -> list[int]:
        """Returns ids as plain integers.

        Raises:
            ValueError: If an id is outside the vocabulary.
        """
        ids = [int(token) for token in ids]
        for position, token in enumerate(ids):
            if not 0 <= token < self.vocabulary_size:
                raise ValueError(
                    f"ids must lie between 0 and {self.vocabulary_size - 1}; "
                    f"received ids[{position}]={token}."
                )
        return ids
