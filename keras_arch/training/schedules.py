"""Learning rate as a function of the number of optimizer updates."""

import math

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_arch")
class WarmupCosine(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up to a peak, then half a cosine down to a minimum.

    With `s` the number of updates already made (0 at the first update):

        s <  warmup_steps:  peak * (s + 1) / (warmup_steps + 1)
        s <= total_steps:   minimum + (peak - minimum) * (1 + cos(pi * p)) / 2,
                            p = (s - warmup_steps) / (total_steps - warmup_steps)
        s >  total_steps:   minimum

    So the first update already moves the weights, the peak is reached at `s = warmup_steps` and
    the minimum at `s = total_steps`.

    Keras hands a schedule the number of batches seen, also under gradient accumulation;
    `micro_batches` (batches per update) turns it into updates.

    Args:
        peak: highest learning rate, positive.
        minimum: last learning rate, between 0 and `peak`.
        warmup_steps: updates of warm-up, at least 0.
        total_steps: update at which the minimum is reached, more than `warmup_steps`.
        micro_batches: the optimizer's `gradient_accumulation_steps`; 1 without accumulation.

    Raises:
        ValueError: an argument is out of its range.

    Source: Loshchilov & Hutter 2017 (SGDR), equation 5, one period; warm-up after Goyal et al.
    2017, section 2.2.
    """

    def __init__(self, peak, minimum, warmup_steps, total_steps, micro_batches=1):
        if peak <= 0:
            raise ValueError(f"peak must be positive; received peak={peak}.")
        if not 0 <= minimum <= peak:
            raise ValueError(
                f"minimum must lie between 0 and peak; received minimum={minimum}, peak={peak}."
            )
        if warmup_steps < 0:
            raise ValueError(
                f"warmup_steps must not be negative; received warmup_steps={warmup_steps}."
            )
        if total_steps <= warmup_steps:
            raise ValueError(
                "total_steps must be more than warmup_steps; received "
                f"total_steps={total_steps}, warmup_steps={warmup_steps}."
            )
        if micro_batches < 1:
            raise ValueError(
                f"micro_batches must be positive; received micro_batches={micro_batches}."
            )
        self.peak = float(peak)
        self.minimum = float(minimum)
        self.warmup_steps = int(warmup_steps)
        self.total_steps = int(total_steps)
        self.micro_batches = int(micro_batches)

    def __call__(self, step):
        """Returns the learning rate after `step` batches: float32 scalar."""
        update = ops.cast(ops.floor_divide(step, self.micro_batches), "float32")
        warmup = self.peak * (update + 1.0) / (self.warmup_steps + 1.0)
        progress = (update - self.warmup_steps) / (self.total_steps - self.warmup_steps)
        cosine = ops.cos(math.pi * ops.clip(progress, 0.0, 1.0))
        decayed = self.minimum + (self.peak - self.minimum) * 0.5 * (1.0 + cosine)
        return ops.where(update < self.warmup_steps, warmup, decayed)

    def get_config(self):
        return {
            "peak": self.peak,
            "minimum": self.minimum,
            "warmup_steps": self.warmup_steps,
            "total_steps": self.total_steps,
            "micro_batches": self.micro_batches,
        }
