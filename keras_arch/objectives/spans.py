"""Random spans of a row, as T5 drops them out."""

import numpy as np

from keras_arch.checks import check_fraction, check_positive
from keras_arch.objectives.rows import generator


def random_spans(length, seed, rate=0.15, mean_length=3.0):
    """Chooses the spans of a row that are noise.

    Kept and noise spans take turns, the first one kept, the last one noise. How many tokens and
    spans are noise follows from the length alone, see `span_counts`; all masks with these numbers
    are equally likely. So a row of one span, 30 tokens or fewer by default, loses its end.

    Args:
        length: T, at least 2.
        seed: Non-negative integer or `numpy.random.Generator`.
        rate: Share of the tokens that are noise.
        mean_length: Mean tokens of a span, at least 1.

    Returns:
        bool `[T]`, True = noise.

    Raises:
        ValueError: If an argument is out of range.

    Source: Raffel et al. 2020, section 3.1.4; `random_spans_noise_mask` of their code.
    """
    tokens, spans = span_counts(length, rate, mean_length)
    random = generator(seed)
    noise = _random_parts(tokens, spans, random)
    kept = _random_parts(length - tokens, spans, random)
    lengths = np.stack([kept, noise], axis=1).ravel()
    return np.repeat(np.arange(2 * spans) % 2 == 1, lengths)


def span_counts(length, rate=0.15, mean_length=3.0):
    """Returns `(tokens, spans)`: how much of a row of `length` tokens is noise.

    `tokens = round(length * rate)`, in float32 and half to even as in T5's code, at least 1 and
    not all; `spans = round(tokens / mean_length)`, at least 1 and at most the tokens kept, one of
    which begins each span. A corrupted row has `length - tokens + spans` ids, its target
    `tokens + spans + 1`.

    Raises:
        ValueError: If an argument is out of range.
    """
    check_positive(length=length)
    check_fraction(rate=rate)
    check_mean_length(mean_length)
    if length < 2:
        raise ValueError(f"length must be at least 2; received length={length}.")
    tokens = int(np.rint(np.float32(length) * np.float32(rate)))
    tokens = min(max(tokens, 1), length - 1)
    spans = int(np.rint(np.float32(tokens) / np.float32(mean_length)))
    return tokens, min(max(spans, 1), length - tokens)


def check_mean_length(mean_length):
    """Raises ValueError unless the mean length of a span is a finite number of 1 or more."""
    is_number = isinstance(mean_length, int | float) and not isinstance(mean_length, bool)
    if not is_number or not 1 <= mean_length < float("inf"):
        raise ValueError(f"mean_length must be at least 1; received mean_length={mean_length!r}.")


def _random_parts(total, count, random):
    """Returns `count` positive integers that add up to `total`, int `[count]`."""
    ends = np.sort(random.choice(total - 1, count - 1, replace=False)) + 1
    return np.diff(ends, prepend=0, append=total)
