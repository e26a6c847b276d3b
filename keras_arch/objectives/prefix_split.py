"""Prefix language modelling: the beginning of a row is given, the rest is to be written."""

from keras_arch.objectives.rows import checked_row, generator


def prefix_split(token_ids, seed):
    """Splits a row at a random place; neither part is empty and all places are equally likely.

    Args:
        token_ids: int `[T]`, T at least 2.
        seed: Non-negative integer or `numpy.random.Generator`.

    Returns:
        `(inputs, targets)`: int32 ids, T of them together.

    Raises:
        ValueError: If the row is too short or an argument is out of range.

    Source: Raffel et al. 2020, sections 3.2.3 and 3.3.1; `random_prefix_noise_mask` of their code.
    """
    ids = checked_row(token_ids=token_ids, least=2)
    cut = generator(seed).integers(1, len(ids))
    return ids[:cut], ids[cut:]
