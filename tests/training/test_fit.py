import gc

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_arch as ka
from keras_arch.training import AdamW, NonFiniteLossError, RunFolder, WarmupCosine, fit
from tests.training import tiny

#: Too small to move a weight, so that no evaluation improves on the first.
STANDSTILL = WarmupCosine(1e-30, 0.0, 0, 100)
MOVING = WarmupCosine(0.1, 0.1, 0, 100)


def train(folder, schedule=STANDSTILL, steps=12, **options):
    """Runs or resumes; returns the model's variables, the progress and the row reported."""
    model = tiny.model()
    model.compile(
        AdamW(schedule, weight_decay=0.0),
        ka.objectives.TokenCrossentropy(),
        weighted_metrics=[ka.objectives.TokenNats(name="nats")],
        jit_compile=False,
        steps_per_execution=options.pop("steps_per_execution", 1),
    )
    progress, row = fit(
        model,
        options.pop("data", tiny.dataset),
        tiny.dataset(1 << 20).take(2),
        RunFolder(folder, {}),
        schedule=schedule,
        steps=steps,
        **{"evaluate_every": 2} | options,
    )
    return tiny.variables(model), progress, row


def no_data(start_step):
    raise AssertionError("a finished training must not read data")


def test_stops_early_keeps_the_best_and_stays_stopped(tmp_path):
    _, progress, row = train(tmp_path, patience=2)
    assert (progress.step, progress.stopped, row["step"]) == (6, True, 2)
    _, progress, row = train(tmp_path, patience=2, data=no_data)
    assert (progress.step, progress.stopped, row["step"]) == (6, True, 2)


def test_without_patience_reports_the_last_step(tmp_path):
    _, progress, row = train(tmp_path, steps=4)
    assert (progress.step, progress.stopped, row["step"]) == (4, False, 4)
    assert row is progress.rows[-1]
    _, progress, row = train(tmp_path, steps=4, data=no_data)
    assert (progress.step, row["step"]) == (4, 4)


def test_options_reach_the_log_and_the_checkpoints(tmp_path):
    train(tmp_path, steps=6, log_every=1, keep=1)
    steps = [line.split(",")[0] for line in (tmp_path / "log.csv").read_text().splitlines()]
    assert steps == ["step", "1", "2", "3", "4", "5", "6"]
    names = [path.name for path in sorted((tmp_path / "checkpoints").iterdir())]
    assert names == ["step-00000002", "step-00000006"]


def test_a_training_that_died_before_its_last_log_row_gets_it(tmp_path):
    train(tmp_path, steps=4, log_every=1)
    log, (events,) = tmp_path / "log.csv", (tmp_path / "events").iterdir()
    complete, size = log.read_text(), events.stat().st_size
    log.write_text("".join(complete.splitlines(keepends=True)[:-2]))
    events.unlink()
    train(tmp_path, steps=4, data=no_data)
    assert log.read_text() == complete
    (events,) = (tmp_path / "events").iterdir()
    assert events.stat().st_size == size


@pytest.mark.parametrize("steps", [0, 3, -2])
def test_refuses_steps_that_do_not_divide(tmp_path, steps):
    with pytest.raises(ValueError, match=f"steps={steps}, evaluate_every=2"):
        train(tmp_path, steps=steps)


@pytest.mark.parametrize(("steps", "evaluate_every"), [(2, 2), (12, 3), (6, 6)])
def test_refuses_a_checkpoint_that_the_steps_do_not_meet(tmp_path, steps, evaluate_every):
    train(tmp_path, steps=4)
    expected = f"after 4 updates .* steps={steps}, evaluate_every={evaluate_every}"
    with pytest.raises(ValueError, match=expected):
        train(tmp_path, steps=steps, evaluate_every=evaluate_every, data=no_data)


@pytest.mark.skipif(keras.backend.backend() == "torch", reason="refused")
def test_several_steps_per_execution_are_the_same_training(tmp_path):
    def trained(folder, **options):
        keras.utils.set_random_seed(5)
        return train(folder, MOVING, steps=12, evaluate_every=6, log_every=3, **options)

    one = trained(tmp_path / "one")
    several = trained(tmp_path / "several", steps_per_execution=3)
    for a, b in zip(one[0], several[0], strict=True):
        np.testing.assert_allclose(a, b, atol=1e-7)
    assert [row["step"] for row in several[1].rows] == [3, 6, 9, 12]
    for a, b in zip(one[1].rows, several[1].rows, strict=True):
        assert a == pytest.approx(b, rel=1e-5)


@pytest.mark.parametrize("steps_per_execution", [0, 4, 12])
def test_refuses_executions_that_do_not_end_where_it_evaluates(steps_per_execution):
    with pytest.raises(ValueError, match=f"steps_per_execution={steps_per_execution}"):
        ka.training.check_executions(steps_per_execution, evaluate_every=3, micro_batches=2)


@pytest.mark.skipif(keras.backend.backend() != "torch", reason="the others have it")
def test_torch_has_one_step_per_execution(tmp_path):
    with pytest.raises(ValueError, match=r"must be 1 on the torch backend.*steps_per_execution=2"):
        train(tmp_path, steps_per_execution=2, data=no_data)


def spoilt(number):
    """Returns a `make_data` whose batch of that number, from 0, has no finite loss."""

    def make_data(start_step):
        def spoil(n, batch):
            inputs, targets, weights = batch
            return inputs, targets, tf.where(n == number, np.nan, tf.cast(weights, "float32"))

        return tiny.dataset(start_step).enumerate(start_step).map(spoil)

    return make_data


def complaint(*arguments, **options):
    """Returns what is said of a training whose loss is not finite."""
    with pytest.raises(NonFiniteLossError) as caught:
        train(*arguments, **options)
    said = str(caught.value)
    del caught
    gc.collect()  # the folder's lock
    return said


def test_a_loss_of_nan_names_its_batch_and_spoils_nothing(tmp_path):
    said = complaint(tmp_path, MOVING, steps=8, data=spoilt(5))
    digest = ka.training.batch_digest(next(iter(spoilt(5)(5))))
    path = tmp_path / "checkpoints" / "step-00000004"
    assert "became nan in step 6, batch 2 of epoch 3." in said
    assert f"SHA-256: {digest}." in said
    assert f"The last good checkpoint, after step 4, is {path}." in said
    resumed, progress, _ = train(tmp_path, MOVING, steps=8)
    keras.utils.set_random_seed(0)
    unbroken, _, _ = train(tmp_path / "unbroken", MOVING, steps=8)
    assert progress.step == 8
    for a, b in zip(resumed, unbroken, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.skipif(keras.backend.backend() == "torch", reason="one step per execution")
def test_a_loss_of_nan_in_a_longer_execution_names_its_batches(tmp_path):
    said = complaint(tmp_path, steps=8, evaluate_every=4, data=spoilt(2), steps_per_execution=2)
    digests = [ka.training.batch_digest(batch) for batch in spoilt(2)(2).take(2)]
    assert "in one of the steps 3 to 4, one of the batches 3 to 4 of epoch 1." in said
    assert f"SHA-256: {digests[0]}, {digests[1]}." in said
    assert "There is no checkpoint before it." in said


def test_weights_that_the_last_update_spoilt_are_not_saved(tmp_path):
    with pytest.raises(NonFiniteLossError, match="validation loss became nan after step 1, "):
        train(tmp_path, WarmupCosine(1e38, 1e38, 0, 100), steps=2, evaluate_every=1)
    assert not list(tmp_path.glob("checkpoints/step-*"))
