import pytest

import keras_arch as ka
from keras_arch.training import AdamW, RunFolder, WarmupCosine, fit
from tests.training import tiny

#: Too small to move a weight, so that no evaluation improves on the first.
STANDSTILL = WarmupCosine(1e-30, 0.0, 0, 100)


def train(folder, schedule=STANDSTILL, steps=12, **options):
    """Runs or resumes; returns the model's variables, the progress and the row reported."""
    model = tiny.model()
    model.compile(
        AdamW(schedule, weight_decay=0.0),
        ka.objectives.TokenCrossentropy(),
        weighted_metrics=[ka.objectives.TokenNats(name="nats")],
        jit_compile=False,
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
