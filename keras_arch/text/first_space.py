"""A space before texts that begin with none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf


class FirstSpace:
    """Puts a space before a text, unless it is empty or begins with one of some strings.

    Args:
        beginnings: The strings, not empty.
    """

    def __init__(self, beginnings: Sequence[str]):
        self._beginnings = tuple(beginnings)

    def add(self, text: str) -> str:
        """Returns a text with its space."""
        return text if not text or text.startswith(self._beginnings) else f" {text}"

    def add_tensor(self, texts: tf.Tensor) -> tf.Tensor:
        """Does inside a graph what `add` does, for string `[B]`; U+FFFD for what is not UTF-8."""
        import tensorflow as tf

        texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
        pattern = f"(?s)(?:{'|'.join(map(re.escape, self._beginnings))}).*"
        stays = tf.strings.regex_full_match(texts, pattern) | (texts == "")
        return tf.where(stays, texts, " " + texts)
