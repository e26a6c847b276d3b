"""What watches a training: loss rows and timing, early stopping, a loss that blew up."""

import math
import time

import keras

from keras_arch.training.progress import perplexity


class NonFiniteLossError(ArithmeticError):
    """The training loss became NaN or infinite."""


class Recorder(keras.callbacks.Callback):
    """Fills a Progress with log rows and timings, and stops at a loss that is not finite.

    Reading a loss waits for the device, so it is done every `every` updates only. One epoch of
    `fit` is one evaluation interval; put the Recorder first among the callbacks.

    Args:
        progress: the Progress to fill.
        schedule: the optimizer's learning rate schedule.
        every: updates between two log rows.
        micro_batches: batches per update.
        checkpoints: folder of the last good checkpoint, for the error message.

    Raises (from `fit`):
        NonFiniteLossError: names the updates, the usual causes and `checkpoints`.
    """

    def __init__(self, progress, schedule, every=25, micro_batches=1, checkpoints=None):
        super().__init__()
        if every < 1:
            raise ValueError(f"every must be positive; received every={every}.")
        self.progress = progress
        self.schedule = schedule
        self.every = every
        self.micro_batches = micro_batches
        self.checkpoints = checkpoints

    def on_train_begin(self, logs=None):
        self.mark = time.perf_counter()

    def on_epoch_begin(self, epoch, logs=None):
        self.updates = 0
        self.logged_updates = 0
        self.logged_sum = 0.0
        self.started = None

    def on_train_batch_end(self, batch, logs=None):
        self.logs = logs
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
        self.progress.step += self.updates
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
        if not math.isfinite(total):
            raise NonFiniteLossError(
                f"the training loss became {float(self.logs['loss'])} between step "
                f"{self.progress.step + self.logged_updates + 1} and step {step}. Usual causes: "
                "labels outside the vocabulary, a learning rate too high, gradients not clipped, "
                f"float16. The last checkpoint, after step {self.progress.step}, is in "
                f"{self.checkpoints}."
            )
        self.progress.rows.append(
            {
                "step": step,
                "train_loss": (total - self.logged_sum) / (self.updates - self.logged_updates),
                "learning_rate": float(self.schedule((step - 1) * self.micro_batches)),
            }
        )
        self.logged_updates, self.logged_sum = self.updates, total


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
