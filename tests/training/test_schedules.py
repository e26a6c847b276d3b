import keras
import numpy as np
import pytest

from keras_arch.training import WarmupCosine


def formula(s, peak, minimum, warmup, total):
    if s < warmup:
        return peak * (s + 1) / (warmup + 1)
    p = min((s - warmup) / (total - warmup), 1)
    return minimum + (peak - minimum) * (1 + np.cos(np.pi * p)) / 2


@pytest.mark.parametrize("warmup", [0, 10])
@pytest.mark.parametrize("step", [0, 1, 9, 10, 11, 55, 99, 100, 250])
def test_follows_the_formula(step, warmup):
    schedule = WarmupCosine(1e-3, 1e-4, warmup, 100)
    assert float(schedule(step)) == pytest.approx(formula(step, 1e-3, 1e-4, warmup, 100), rel=1e-5)


def test_ends_of_the_parts():
    schedule = WarmupCosine(1e-3, 1e-4, warmup_steps=10, total_steps=100)
    assert float(schedule(0)) == pytest.approx(1e-3 / 11)
    assert float(schedule(10)) == pytest.approx(1e-3)
    assert float(schedule(55)) == pytest.approx(5.5e-4)
    assert float(schedule(100)) == pytest.approx(1e-4)
    assert float(schedule(101)) == pytest.approx(1e-4)


def test_counts_updates_not_micro_batches():
    plain = WarmupCosine(1e-3, 1e-4, 10, 100)
    accumulating = WarmupCosine(1e-3, 1e-4, 10, 100, micro_batches=4)
    for batch in (0, 3, 4, 39, 40, 43, 399):
        assert float(accumulating(batch)) == float(plain(batch // 4))


def test_survives_serialization():
    schedule = WarmupCosine(2e-3, 1e-4, 3, 40, micro_batches=2)
    config = keras.saving.serialize_keras_object(schedule)
    copy = keras.saving.deserialize_keras_object(config)
    assert isinstance(copy, WarmupCosine)
    assert copy.get_config() == schedule.get_config()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 0.0, 1, 10), "peak must be positive; received peak=0.0"),
        ((1e-3, 2e-3, 1, 10), "minimum must lie between 0 and peak; received minimum=0.002"),
        ((1e-3, -1e-4, 1, 10), "received minimum=-0.0001"),
        ((1e-3, 1e-4, -1, 10), "received warmup_steps=-1"),
        ((1e-3, 1e-4, 10, 10), "received total_steps=10, warmup_steps=10"),
        ((1e-3, 1e-4, 1, 10, 0), "received micro_batches=0"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        WarmupCosine(*arguments)
