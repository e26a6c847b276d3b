"""How far a training has come, in a form that survives the process."""

import dataclasses
import math


@dataclasses.dataclass
class Progress:
    """State of a training besides the model's and the optimizer's variables.

    Attributes:
        step: optimizer updates made; also the number of global batches read, so the data
            position is `start_step=progress.step`.
        rows: log rows, dicts with `step`, `train_loss` and `learning_rate`, and on evaluated
            steps also the validation figures.
        stopped: early stopping ended the training.
        train_seconds: wall-clock seconds inside `fit`, evaluations and compilation included.
        timed_steps, timed_seconds: updates and seconds after each interval's first update; no
            compilation, no evaluation.
    """

    step: int = 0
    rows: list = dataclasses.field(default_factory=list)
    stopped: bool = False
    train_seconds: float = 0.0
    timed_steps: int = 0
    timed_seconds: float = 0.0

    def evaluations(self):
        """Returns the rows that carry a validation loss, oldest first."""
        return [row for row in self.rows if "validation_loss" in row]

    def best(self):
        """Returns the row with the lowest validation loss; the earliest of equals."""
        return min(self.evaluations(), key=lambda row: row["validation_loss"])

    def ms_per_step(self):
        """Returns milliseconds per update without warm-up; None before there is one."""
        return 1000 * self.timed_seconds / self.timed_steps if self.timed_steps else None


def perplexity(nats):
    """Returns exp(nats); None above what a float32 holds."""
    return math.exp(nats) if nats < 88 else None
