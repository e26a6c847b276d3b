"""How often each of several data sets is drawn from."""

import numpy as np

from keras_arch.checks import check_positive, check_positive_number


def mixing_rates(sizes, temperature=1.0, limit=None):
    """Returns the share of each data set in a mixture, float64 `[n]`, by their sizes.

    `min(size, limit) ** (1 / temperature)`, over the sum of all: proportional to the sizes at
    temperature 1, equal as it goes to infinity. The limit keeps one huge set from crowding out the
    others.

    Args:
        sizes: Examples in each set, all positive.
        temperature: T, positive.
        limit: K, the artificial size limit; None: without.

    Raises:
        ValueError: If an argument is out of range or there is no set.

    Source: Raffel et al. 2020, section 3.5.2.
    """
    check_positive_number(temperature=temperature)
    if limit is not None:
        check_positive(limit=limit)
    if not len(sizes):
        raise ValueError(f"sizes must hold at least one size; received sizes={sizes!r}.")
    sizes = [size.item() if isinstance(size, np.integer) else size for size in sizes]
    for i, size in enumerate(sizes):
        check_positive(**{f"sizes[{i}]": size})
    capped = np.array([size if limit is None else min(size, limit) for size in sizes], "float64")
    # Relative to the largest, so that no power overflows.
    rates = (capped / capped.max()) ** (1.0 / temperature)
    return rates / rates.sum()
