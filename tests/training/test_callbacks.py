import keras
import numpy as np
import pytest

import keras_arch as ka
from keras_arch.training import (
    Checkpoints,
    EarlyStopping,
    NonFiniteLossError,
    Progress,
    Recorder,
    WarmupCosine,
)
from tests.training import tiny

SCHEDULE = WarmupCosine(0.1, 0.01, 2, 20)


class Losses(keras.callbacks.Callback):
    """What Keras shows: the mean loss since the epoch began, for each batch."""

    def on_train_begin(self, logs=None):
        self.running = []

    def on_train_batch_end(self, batch, logs=None):
        self.running.append(float(logs["loss"]))

    def batch_losses(self):
        sums = np.array(self.running) * np.arange(1, len(self.running) + 1)
        return np.diff(sums, prepend=0.0)


def compiled(loss=None):
    model = tiny.model()
    model.compile(
        keras.optimizers.SGD(SCHEDULE),
        loss or ka.objectives.TokenCrossentropy(),
        weighted_metrics=[ka.objectives.TokenNats(name="nats")],
        jit_compile=False,
    )
    return model


def test_rows_hold_the_mean_loss_of_their_steps():
    progress, losses = Progress(), Losses()
    compiled().fit(
        tiny.dataset(),
        steps_per_epoch=5,
        shuffle=False,
        verbose=0,
        validation_data=tiny.dataset(100).take(1),
        callbacks=[Recorder(progress, SCHEDULE, every=2), losses],
    )
    assert [row["step"] for row in progress.rows] == [2, 4, 5]
    each = losses.batch_losses()
    expected = [each[:2].mean(), each[2:4].mean(), each[4]]
    assert [row["train_loss"] for row in progress.rows] == pytest.approx(expected, rel=1e-4)
    rates = [float(SCHEDULE(step - 1)) for step in (2, 4, 5)]
    assert [row["learning_rate"] for row in progress.rows] == pytest.approx(rates)


def test_evaluations_and_counts_go_on_over_intervals():
    progress = Progress(step=6, rows=[{"step": 6}], train_seconds=100.0)
    history = compiled().fit(
        tiny.dataset(),
        epochs=2,
        steps_per_epoch=3,
        shuffle=False,
        verbose=0,
        validation_data=tiny.dataset(100).take(2),
        callbacks=[Recorder(progress, SCHEDULE, every=2)],
    )
    assert progress.step == 12
    assert [row["step"] for row in progress.rows] == [6, 8, 9, 11, 12]
    assert [row["step"] for row in progress.evaluations()] == [9, 12]
    nats = [row["validation_loss"] for row in progress.evaluations()]
    assert nats == pytest.approx(history.history["val_nats"])
    assert progress.rows[-1]["perplexity"] == pytest.approx(np.exp(nats[-1]))
    assert progress.best()["validation_loss"] == min(nats)
    assert progress.train_seconds > 100.0
    assert progress.timed_steps == 4
    assert 0 < progress.ms_per_step() < 1000 * (progress.train_seconds - 100.0)


def test_micro_batches_are_counted_as_updates():
    progress = Progress()
    compiled().fit(
        tiny.dataset(),
        steps_per_epoch=8,
        shuffle=False,
        verbose=0,
        callbacks=[Recorder(progress, SCHEDULE, every=1, micro_batches=4)],
    )
    assert progress.step == 2
    assert [row["step"] for row in progress.rows] == [1, 2]
    rates = [float(SCHEDULE(0)), float(SCHEDULE(4))]
    assert [row["learning_rate"] for row in progress.rows] == pytest.approx(rates)


def test_labels_outside_the_vocabulary_stop_the_training():
    import tensorflow as tf

    data = (
        tiny.dataset()
        .enumerate()
        .map(lambda n, batch: (batch[0], batch[1] + tf.where(n >= 5, 100, 0), batch[2]))
    )
    progress = Progress(step=40)
    message = "became nan in step 46, batch 6 of epoch 1.*labels outside.*is here/step-00000040"
    with pytest.raises(NonFiniteLossError, match=message):
        compiled(nan_outside).fit(
            data,
            steps_per_epoch=8,
            shuffle=False,
            verbose=0,
            callbacks=[Recorder(progress, SCHEDULE, every=2, checkpoints=Checkpoints("here"))],
        )


def nan_outside(targets, logits):
    """A loss with the contract of TokenCrossentropy in a compiled program, in eager torch too."""
    inside = keras.ops.max(targets) < tiny.VOCABULARY
    return keras.ops.mean(keras.ops.where(inside, keras.ops.square(logits), float("nan")))


@pytest.mark.parametrize("every", [0, -1])
def test_refuses_to_log_never(every):
    with pytest.raises(ValueError, match=f"every={every}"):
        Recorder(Progress(), SCHEDULE, every=every)


def stopped_after(losses, patience, restart):
    """Feeds validation losses; a new callback takes over after `restart` of them."""
    progress = Progress()
    model = compiled()

    def fresh():
        callback = EarlyStopping(progress, patience)
        callback.set_model(model)
        callback.on_train_begin()
        return callback

    callback = fresh()
    model.stop_training = False
    for epoch, loss in enumerate(losses):
        if epoch == restart:
            callback = fresh()
        progress.rows.append({"step": epoch, "validation_loss": loss})
        callback.on_epoch_end(epoch, {"val_nats": loss})
        if model.stop_training:
            return epoch
    return None


@pytest.mark.parametrize("restart", [None, 1, 2, 3, 4])
def test_early_stopping_counts_on_after_a_restart(restart):
    assert stopped_after([3.0, 2.0, 2.5, 2.1, 2.2, 1.0], patience=3, restart=restart) == 4
    assert stopped_after([3.0, 2.0, 2.5, 1.9, 2.2, 2.3], patience=3, restart=restart) is None


def test_refuses_no_patience():
    with pytest.raises(ValueError, match="patience=0"):
        EarlyStopping(Progress(), 0)
