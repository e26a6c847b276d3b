"""What watches a training: loss rows and timing, early stopping, a loss that blew up."""

import math
import time

import keras

from keras_arch.training.non_finite import (
    batch_digests,
    last_checkpoint,
    spoiled_training,
    spoiled_weights,
)
from keras_arch.training.progress import perplexity


class Recorder(keras.callbacks.Callback):
    """Fills a Progress with log rows and timings, and stops at a loss that is not finite.

    One epoch of `fit` is one evaluation interval; put the Recorder first among the callbacks, so
    that weights whose validation loss is not finite are not saved.

    Args:
        progress: the Progress to fill.
        schedule: the optimizer's learning rate schedule.
        every: updates between two log rows.
        micro_batches: batches per update.
        checkpoints: the Checkpoints, for the error message.
        make_data: function of the updates made that returns the batches from there on; the error
            message gives the `batch_digest` of the batch at fault.

    Raises (from `fit`):
        NonFiniteLossError: names the update, the batch, the usual causes and the last good
            checkpoint. With `steps_per_execution` it is one of as many batches.
    """

    def __init__(
        self, progress, schedule, every=25, micro_batches=1, checkpoints=None, make_data=None
    ):
        super().__init__()
        if every < 1:
            raise ValueError(f"every must be positive; received every={every}.")
        self.progress = progress
        self.schedule = schedule
        self.every = every
        self.micro_batches = micro_batches
        self.checkpoints = checkpoints
        self.make_data = make_data

    def on_train_begin(self, logs=None):
        self.mark = time.perf_counter()

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch
        self.updates = 0
        self.logged_updates = 0
        self.logged_sum = 0.0
        self.started = None

    def on_train_batch_end(self, batch, logs=None):
        self.logs = logs
        if not math.isfinite(logs["loss"]):
            raise self.spoiled(batch, logs["loss"])
        updates, rest = divmod(batch + 1, self.micro_batches)
        if rest:
            return
        self.updates = updates
        if self.started is None:
            float(logs["loss"])
            self.started = time.perf_counter()
            self.untimed = updates
        if updates - self.logged_updates >= self.every:
            self.log_row()

    def on_test_begin(self, logs=None):
        self.finish_interval()

    def on_epoch_end(self, epoch, logs=None):
        self.finish_interval()
        step = self.progress.step + self.updates
        if not math.isfinite(logs.get("val_nats", 0.0)):
            raise spoiled_weights(logs["val_nats"], step, self.last_checkpoint())
        self.progress.step = step
        if "val_nats" in logs:
            row = self.progress.rows[-1]
            row["validation_loss"] = float(logs["val_nats"])
            row["perplexity"] = perplexity(row["validation_loss"])
        now = time.perf_counter()
        self.progress.train_seconds += now - self.mark
        self.mark = now

    def finish_interval(self):
        """Logs the interval's last row and stops its clock, before evaluation starts."""
        if self.updates > self.logged_updates:
            self.log_row()
        if self.started is not None:
            float(self.logs["loss"])
            self.progress.timed_seconds += time.perf_counter() - self.started
            self.progress.timed_steps += self.updates - self.untimed
            self.started = None

    def log_row(self):
        """Adds a row with the mean loss since the last row.

        Keras keeps the mean since the interval began; two of those give the mean between them.
        """
        total = float(self.logs["loss"]) * self.updates
        step = self.progress.step + self.updates
        self.progress.rows.append(
            {
                "step": step,
                "train_loss": (total - self.logged_sum) / (self.updates - self.logged_updates),
                "learning_rate": float(self.schedule((step - 1) * self.micro_batches)),
            }
        )
        self.logged_updates, self.logged_sum = self.updates, total

    def spoiled(self, batch, loss):
        """Returns the error that names the batch, or those of one execution up to it."""
        first = batch + 1 - self.model.steps_per_execution
        steps = [self.progress.step + number // self.micro_batches for number in (first, batch)]
        digests = []
        if self.make_data is not None:
            data, start = self.make_data(steps[0]), first % self.micro_batches
            digests = batch_digests(data, start, batch - first + 1)
        return spoiled_training(
            loss,
            self.epoch + 1,
            [step + 1 for step in steps],
            [first + 1, batch + 1],
            digests,
            self.last_checkpoint(),
        )

    def last_checkpoint(self):
        """Returns the sentence that says from where to go on."""
        return last_checkpoint(self.checkpoints, self.progress.step)


class EarlyStopping(keras.callbacks.EarlyStopping):
    """Keras' early stopping on the validation loss, carrying on where a killed run was.

    Args:
        progress: the Progress whose earlier evaluations count.
        patience: evaluations without improvement before it stops.
    """

    def __init__(self, progress, patience):
        if patience < 1:
            raise ValueError(f"patience must be positive; received patience={patience}.")
        super().__init__(monitor="val_nats", mode="min", patience=patience)
        self.progress = progress

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        for epoch, row in enumerate(self.progress.evaluations()):
            super().on_epoch_end(epoch, {self.monitor: row["validation_loss"]})
