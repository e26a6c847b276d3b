import math

import pytest

from keras_arch.generation import ExponentialSampling, InverseSigmoidSampling, LinearSampling

pytestmark = pytest.mark.once


@pytest.mark.parametrize("step", [0, 1, 7, 40, 1000])
def test_schedules_are_the_formulas(step):
    def near(expected):
        return pytest.approx(expected, rel=1e-5, abs=1e-7)

    step = float(step)
    assert float(LinearSampling(0.9, 0.02, 0.25).epsilon(step)) == near(
        max(0.25, 0.9 - 0.02 * step)
    )
    assert float(ExponentialSampling(0.99).epsilon(step)) == near(0.99**step)
    assert float(InverseSigmoidSampling(12.0).epsilon(step)) == near(
        12 / (12 + math.exp(step / 12))
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LinearSampling(0.5, 0.1, 0.6), r"first=0\.5, last=0\.6"),
        (lambda: LinearSampling(1.5, 0.1, 0.6), r"first=1\.5"),
        (lambda: LinearSampling(1.0, -0.1, 0.6), r"slope=-0\.1"),
        (lambda: ExponentialSampling(1.0), r"base=1\.0"),
        (lambda: InverseSigmoidSampling(0.5), r"k=0\.5"),
    ],
)
def test_bad_fields_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
