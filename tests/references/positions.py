"""Positions and the biases that depend on them, one number at a time. Float64."""

import math

import numpy as np


def token_positions(valid, segment_ids=None):
    """Counts the real tokens before each one, in its own segment; a pad repeats the last count.

    Args:
        valid: bool [B, T].
        segment_ids: Optional int [B, T].

    Returns:
        int [B, T].
    """
    positions = np.zeros(valid.shape, "int64")
    for b, row in enumerate(valid):
        count, segment = 0, None
        for t, real in enumerate(row):
            if segment_ids is not None and segment_ids[b, t] != segment:
                count, segment = 0, segment_ids[b, t]
            count += int(real)
            positions[b, t] = max(count - 1, 0)
    return positions


def sinusoidal(positions, width, base=10000.0):
    """Sines and cosines of Vaswani et al. 2017, section 3.5: [..., width] for positions [...]."""
    table = np.zeros((*np.shape(positions), width))
    for index in np.ndindex(*np.shape(positions)):
        for i in range(width // 2):
            angle = positions[index] / base ** (2 * i / width)
            table[(*index, 2 * i)] = math.sin(angle)
            table[(*index, 2 * i + 1)] = math.cos(angle)
    return table


def half_split(sinusoids):
    """The same with all sines before all cosines, as Marian's code has it."""
    return np.concatenate([sinusoids[..., 0::2], sinusoids[..., 1::2]], axis=-1)


def t5_bucket(distance, buckets, max_distance, bidirectional):
    """The bucket of `key position - query position`. Raffel et al. 2020, section 2.1.

    Half of the buckets are exact; the other half grow by the logarithm. Whole numbers only, so no
    rounding decides: `floor(n log(d / e) / log(m / e))` is the largest k with
    `(m / e)^k <= (d / e)^n`.
    """
    first = 0
    if bidirectional:
        buckets //= 2
        first = buckets if distance > 0 else 0
        distance = abs(distance)
    else:
        distance = max(-distance, 0)
    exact = buckets // 2
    if distance < exact:
        return first + distance
    steps = buckets - exact
    k = 0
    while k + 1 < steps and max_distance ** (k + 1) * exact**steps <= distance**steps * exact ** (
        k + 1
    ):
        k += 1
    return first + exact + k


def relative_bias(positions, table, max_distance, bidirectional):
    """T5's bias [B, N, T, T] from a table [buckets, N]."""
    rows, time = positions.shape
    buckets, heads = table.shape
    bias = np.zeros((rows, heads, time, time))
    for b, t, s in np.ndindex(rows, time, time):
        distance = int(positions[b, s] - positions[b, t])
        bias[b, :, t, s] = table[t5_bucket(distance, buckets, max_distance, bidirectional)]
    return bias


def alibi_slopes(heads):
    """A slope per head, as the authors' code computes them. Press et al. 2022, section 3.

    For a power of two the geometric sequence that starts at, and multiplies by, `2^(-8/N)`; for
    other numbers that of the power below, then every other one of the next power.
    """
    if math.log2(heads).is_integer():
        return [2 ** (-8 * (n + 1) / heads) for n in range(heads)]
    below = 2 ** math.floor(math.log2(heads))
    return alibi_slopes(below) + alibi_slopes(2 * below)[0::2][: heads - below]


def alibi_bias(positions, heads):
    """Minus slope times distance, [B, N, T, T]."""
    rows, time = positions.shape
    slopes = alibi_slopes(heads)
    bias = np.zeros((rows, heads, time, time))
    for b, n, t, s in np.ndindex(rows, heads, time, time):
        bias[b, n, t, s] = -slopes[n] * abs(int(positions[b, t]) - int(positions[b, s]))
    return bias
