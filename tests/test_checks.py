import numpy as np
import pytest

from keras_arch.checks import check_count, check_fraction, check_positive, check_rate

pytestmark = pytest.mark.once


def test_positive_integers_pass():
    check_positive(width=1, heads=7, layers=np.int64(2))


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "3", None])
def test_others_are_named(value):
    with pytest.raises(ValueError, match=f"positive integer; received heads={value!r}"):
        check_positive(width=1, heads=value)


def test_counts_may_be_0():
    check_count(offset=0)
    for value in (-1, 1.0, True, None):
        with pytest.raises(ValueError, match=f"0 or more; received offset={value!r}"):
            check_count(offset=value)


def test_rates_pass():
    check_rate(dropout=0.0)
    check_rate(dropout=0.99)


@pytest.mark.parametrize("value", [1.0, -0.1, float("nan"), "0.1", None])
def test_other_rates_are_named(value):
    with pytest.raises(ValueError, match=f"dropout={value!r}"):
        check_rate(dropout=value)


def test_fractions_pass():
    check_fraction(rate=0.001)
    check_fraction(rate=0.999)


@pytest.mark.parametrize("value", [0, 1.0, -0.1, float("nan"), True, "0.1", None])
def test_other_fractions_are_named(value):
    with pytest.raises(ValueError, match=f"between 0 and 1; received rate={value!r}"):
        check_fraction(rate=value)
