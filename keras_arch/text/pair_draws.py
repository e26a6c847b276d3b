"""Where pairs to train on come from: functions that draw one at random.

A draw takes a `numpy.random.Generator` and gives `(source ids, target ids)`. It keeps no state, so
`pair_stream` can go on at any step; a pair may come again before all others have come.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from keras_arch.checks import check_positive
from keras_arch.text.arguments import checked_ids
from keras_arch.text.pairs import Pairs
from keras_arch.text.tokenizer import Tokenizer

Pair = tuple[Sequence[int], Sequence[int]]
Draw = Callable[[np.random.Generator], Pair]


def task_pairs(pairs: Pairs, tokenizer: Tokenizer, prefix: str = "") -> Draw:
    """Draws from the pairs of a task: texts, and what they are to become.

    Args:
        pairs: Texts, none empty, as `find_pairs` gives them.
        tokenizer: Encodes them when they are drawn.
        prefix: What each source begins with, so that a model of several tasks can tell them apart
            (Raffel et al. 2020, section 2.4): `"translate English to German: "`.

    Raises:
        ValueError: If there are no pairs, or a text is empty or has no partner.
    """
    sources, targets = pairs
    if not sources or len(sources) != len(targets):
        raise ValueError(
            "pairs must hold as many sources as targets, at least one; received "
            f"{len(sources)} and {len(targets)}."
        )
    for i, texts in enumerate(zip(sources, targets, strict=True)):
        if not all(texts):
            raise ValueError(f"pairs must not hold empty texts; received {texts} in pair {i}.")

    def draw(random: np.random.Generator) -> Pair:
        i = random.integers(len(sources))
        return tokenizer.encode(prefix + sources[i]), tokenizer.encode(targets[i])

    return draw


def window_pairs(
    ids: Sequence[int] | np.ndarray,
    length: int,
    corrupt: Callable[[np.ndarray, np.random.Generator], Pair],
    vocabulary_size: int | None = None,
) -> Draw:
    """Draws windows of one long text and makes a pair of each.

    Args:
        ids: int `[n]`; an array, a list or a `numpy.memmap`, which stays on disk.
        length: Tokens of a window, at most n.
        corrupt: What makes a pair of a window, such as `keras_arch.objectives.prefix_split`, or
            `functools.partial(keras_arch.objectives.span_corruption, sentinel_ids=...)`.
        vocabulary_size: V; when given, ids are checked to lie below it.

    Raises:
        ValueError: If an argument is out of range, or an id is.
    """
    check_positive(length=length)
    ids = checked_ids(ids, vocabulary_size)
    if length > len(ids):
        raise ValueError(
            f"length must be at most the number of ids, {len(ids)}; received length={length}."
        )

    def draw(random: np.random.Generator) -> Pair:
        begin = random.integers(len(ids) - length + 1)
        return corrupt(ids[begin : begin + length].astype(np.int32), random)

    return draw


def mixed_pairs(draws: Sequence[Draw], weights: Sequence[float]) -> Draw:
    """Draws from one of several draws, for training on several tasks at once.

    Args:
        draws: At least one.
        weights: How often to draw from each, relative to the others; see
            `keras_arch.objectives.mixing_rates`.

    Raises:
        ValueError: If there are no draws, or as many weights, or a weight is negative or not
            finite, or all are 0.

    Source: Raffel et al. 2020, section 3.5.2.
    """
    if not draws or len(draws) != len(weights):
        raise ValueError(
            "draws and weights must be as many, at least one; received "
            f"{len(draws)} and {len(weights)}."
        )
    for i, weight in enumerate(weights):
        if not 0 <= weight < math.inf:
            raise ValueError(
                f"weights must be finite and not negative; received weights[{i}]={float(weight)}."
            )
    if not any(weights):
        raise ValueError("weights must not all be 0.")
    rates = np.array(weights, "float64") / math.fsum(weights)

    def draw(random: np.random.Generator) -> Pair:
        return draws[random.choice(len(draws), p=rates)](random)

    return draw
