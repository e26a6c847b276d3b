"""Strings that stand for fixed ids wherever they occur in a text."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from keras_arch.text.white_space import SPACE

if TYPE_CHECKING:
    import tensorflow as tf

# A byte that UTF-8 never uses, so no text holds it and no pattern matches it.
CUT = b"\xff"


class Literals:
    """Finds strings in texts and gives them their ids; the rest is encoded by someone else.

    The leftmost string is taken first and, of several that begin there, the longest. What lies
    between two of them is encoded by itself.

    Args:
        ids: String to ids.
        takes_space: Those that take the white space before them.
    """

    def __init__(self, ids: Mapping[str, Sequence[int]], takes_space: Collection[str] = ()):
        self._ids = {literal: list(ids[literal]) for literal in sorted(ids, key=len, reverse=True)}
        self._pattern = "|".join(map(re.escape, self._ids))
        taking = "|".join(re.escape(literal) for literal in self._ids if literal in takes_space)
        self._space = f"[{SPACE}]+({taking})" if taking else None

    @functools.cached_property
    def _split(self):
        return re.compile(f"({self._pattern})").split

    def encode(self, text: str, encode_rest: Callable[[str], list[int]]) -> list[int]:
        """Returns the ids of a text."""
        if not self._ids:
            return encode_rest(text)
        if self._space:
            text = re.sub(self._space, r"\1", text)
        rest_and_literals = self._split(text)
        ids = encode_rest(rest_and_literals[0])
        for literal, rest in zip(rest_and_literals[1::2], rest_and_literals[2::2], strict=True):
            ids = ids + self._ids[literal] + encode_rest(rest)
        return ids

    def encode_tensor(self, texts: tf.Tensor, encode_rest: Callable) -> tf.RaggedTensor:
        """Encodes string `[B]` to ragged int32 `[B, None]`, inside a graph."""
        import tensorflow as tf

        if not self._ids:
            return encode_rest(texts)
        texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
        if self._space:
            texts = tf.strings.regex_replace(texts, self._space, r"\1")
        marked = tf.strings.regex_replace(texts, self._pattern, CUT + rb"\0" + CUT)
        parts = tf.strings.split(marked, sep=CUT)
        matches = parts.flat_values[:, None] == tf.constant(list(self._ids))
        found = tf.reduce_any(matches, axis=-1)
        rest = encode_rest(tf.where(found, "", parts.flat_values))
        # The row after the last literal's is empty: what the rest gets.
        rows = tf.ragged.constant([*self._ids.values(), []], tf.int32, ragged_rank=1)
        index = tf.where(found, tf.argmax(matches, -1, tf.int32), len(self._ids))
        ids = tf.concat([rest, tf.gather(rows, index)], axis=1)
        return parts.with_flat_values(ids).merge_dims(1, 2)
