"""What training a subword vocabulary with the `tokenizers` package has in common."""

from __future__ import annotations

import json
from collections.abc import Iterable


def learn(learner, trainer, blocks: Iterable[str]) -> dict:
    """Trains a `tokenizers.Tokenizer` on blocks of text and returns its model as JSON data."""
    learner.train_from_iterator(blocks, trainer)
    return json.loads(learner.to_str())["model"]


def check_vocabulary_size(vocabulary_size: int, least: int, content: str) -> None:
    """Raises ValueError for a vocabulary that is too small for what it must hold."""
    if isinstance(vocabulary_size, bool) or not isinstance(vocabulary_size, int):
        raise ValueError(
            f"vocabulary_size must be an integer; received vocabulary_size={vocabulary_size!r}."
        )
    if vocabulary_size < least:
        raise ValueError(
            f"vocabulary_size must be at least {least}, to hold {content}; "
            f"received vocabulary_size={vocabulary_size}."
        )
