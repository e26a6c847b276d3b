import numpy as np
import pytest

from keras_arch.objectives import mixing_rates

pytestmark = pytest.mark.once


def test_rates_by_hand():
    np.testing.assert_allclose(mixing_rates([10, 30]), [0.25, 0.75])
    # min(e, K): 10 and 15.
    np.testing.assert_allclose(mixing_rates([10, 30], limit=15), [0.4, 0.6])
    # Square roots: 1, 2, 5.
    np.testing.assert_allclose(mixing_rates([1, 4, 25], temperature=2), [1 / 8, 2 / 8, 5 / 8])
    # The limit comes before the temperature: 1, 2, 3.
    np.testing.assert_allclose(mixing_rates([1, 4, 25], 2, limit=9), [1 / 6, 2 / 6, 3 / 6])


def test_extreme_temperatures():
    np.testing.assert_allclose(mixing_rates([1, 10**9], 1e9), [0.5, 0.5], atol=1e-7)
    np.testing.assert_allclose(mixing_rates([10**8, 10**9], 1e-3), [0, 1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "sizes must hold at least one size; received sizes=\\[\\]"),
        (([3, 0],), "sizes\\[1\\] must be a positive integer; received sizes\\[1\\]=0"),
        (([3], 0), "temperature must be positive; received temperature=0"),
        (([3], 1, 0), "limit must be a positive integer; received limit=0"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        mixing_rates(*arguments)
