"""Checks of rows of token ids, and of what they are changed by."""

import numpy as np

from keras_arch.checks import check_fraction, check_positive


def checked_row(least=0, vocabulary_size=None, **ids):
    """Returns ids, given by their name, as int32 `[n]`.

    Args:
        least: How many there must be.
        vocabulary_size: V; when given, ids are checked to lie below it.

    Raises:
        ValueError: If they are no integers in [0, V) of one axis, or too few.
    """
    ((name, values),) = ids.items()
    ids = np.asarray(values)
    ids = np.zeros(0, "int32") if ids.shape == (0,) else ids
    if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer):
        raise ValueError(
            f"{name} must be integers of shape [n]; received shape {ids.shape}, dtype {ids.dtype}."
        )
    if len(ids) < least:
        raise ValueError(f"{name} must hold at least {least} ids; received {len(ids)}.")
    limit = 2**31 if vocabulary_size is None else vocabulary_size
    wrong = ids[(ids < 0) | (ids >= limit)]
    if len(wrong):
        raise ValueError(f"{name} must lie in [0, {limit}); received {wrong[0]}.")
    return ids.astype("int32")


def checked_rows(token_ids, valid, vocabulary_size):
    """Returns rows as int32 and bool `[B, T]`, copied.

    Raises:
        ValueError: If they are not of one shape `[B, T]`, a real token is no id in [0, V), or
            `valid` is not bool.
    """
    check_positive(vocabulary_size=vocabulary_size)
    ids, valid = np.array(token_ids), np.array(valid)
    if ids.ndim != 2 or ids.shape != valid.shape or valid.dtype != bool:
        raise ValueError(
            "token_ids and valid must be int and bool of one shape [B, T]; received shapes "
            f"{ids.shape} and {valid.shape}, dtypes {ids.dtype} and {valid.dtype}."
        )
    checked_row(token_ids=ids[valid], vocabulary_size=vocabulary_size)
    return ids.astype("int32"), valid


def random_count(total, rate, random):
    """Returns a whole number whose mean is `total * rate`, the next one below or above it.

    Raises:
        ValueError: If the rate is not between 0 and 1.
    """
    check_fraction(rate=rate)
    return int(total * rate + random.random())


def generator(seed):
    """Returns the NumPy generator of a seed; a generator is returned as it is.

    Raises:
        ValueError: If it is neither a non-negative integer nor a generator.
    """
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(
            "seed must be a non-negative integer or a numpy.random.Generator; received "
            f"seed={seed!r}."
        )
    return np.random.default_rng(seed)
