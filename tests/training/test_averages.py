import keras
import numpy as np
import pytest

import keras_arch as ka
from keras_arch.training import AdamW, RunFolder, WarmupCosine, fit
from keras_arch.training.averages import has_averages
from tests.training import tiny

VALIDATION = tiny.dataset(1 << 20).take(2)


def train(folder, patience=0, **average):
    """Trains for 8 updates or goes on; returns the model, the progress and the row reported."""
    keras.utils.set_random_seed(1)
    schedule = WarmupCosine(0.2, 0.1, 0, 8)
    model = tiny.model()
    model.compile(
        AdamW(schedule, **average),
        ka.objectives.TokenCrossentropy(),
        weighted_metrics=[ka.objectives.TokenNats(name="nats")],
        jit_compile=keras.backend.backend() == "jax",
    )
    options = {"schedule": schedule, "steps": 8, "evaluate_every": 4, "patience": patience}
    progress, row = fit(model, tiny.dataset, VALIDATION, RunFolder(folder, {}), **options)
    return model, progress, row


def column(progress, name):
    return [row[name] for row in progress.rows]


def test_averages_are_evaluated_and_kept_and_the_weights_trained(tmp_path):
    _, plain, _ = train(tmp_path / "plain")
    model, averaged, row = train(tmp_path / "averaged", use_ema=True, ema_momentum=0.9)
    # Two programs may round differently.
    expected = pytest.approx(column(plain, "train_loss"), rel=1e-5)
    assert column(averaged, "train_loss") == expected
    difference = np.subtract(*[column(p, "validation_loss") for p in (averaged, plain)])
    assert np.abs(difference).min() > 1e-3
    evaluated = model.evaluate(VALIDATION, verbose=0, return_dict=True)["nats"]
    assert row["validation_loss"] == pytest.approx(evaluated, rel=1e-6)
    # A finished training, and the best of its checkpoints, give averages too.
    again, _, _ = train(tmp_path / "averaged", use_ema=True, ema_momentum=0.9)
    for ours, theirs in zip(tiny.variables(again), tiny.variables(model), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    best, _, row = train(tmp_path / "averaged", patience=9, use_ema=True, ema_momentum=0.9)
    evaluated = best.evaluate(VALIDATION, verbose=0, return_dict=True)["nats"]
    assert row["validation_loss"] == pytest.approx(evaluated, rel=1e-6)
    assert row["validation_loss"] == min(column(averaged, "validation_loss"))


@pytest.mark.once
def test_finds_the_averages_of_an_optimizer_in_a_loss_scale():
    for average in (True, False):
        optimizer = AdamW(use_ema=average)
        assert has_averages(optimizer) is average
        assert has_averages(keras.optimizers.LossScaleOptimizer(optimizer)) is average
