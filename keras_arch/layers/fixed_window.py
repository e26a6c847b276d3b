"""The last tokens of each position, side by side: what a fixed-window model sees."""

import keras
from keras import ops

from keras_arch.layers.part import Part


@keras.saving.register_keras_serializable(package="keras_arch")
class FixedWindow(Part):
    """Concatenates the vectors of the last `size` real tokens at each position, the oldest first.

    Pads are skipped, wherever they stand: a row padded on the left has the same windows as that row
    alone. Before the first token of a row there are zeros.

    Source: Bengio et al. 2003, section 2.

    Args:
        size: Tokens in a window; 0 sees nothing.

    Call arguments:
        x: float `[B, T, D]`.
        valid: bool `[B, T]`, True = real token.

    Returns:
        float `[B, T, size * D]`.
    """

    def __init__(self, size, **kwargs):
        super().__init__(**kwargs)
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise ValueError(f"size must be a non-negative integer; received size={size!r}.")
        self.size = size

    def build(self, x_shape, valid_shape):
        self.width = x_shape[-1]

    def call(self, x, valid):
        return self._windows(x, valid, self._before(ops.shape(x)[0]))[0]

    def compute_output_spec(self, x, valid):
        return keras.KerasTensor((*x.shape[:-1], self.size * x.shape[-1]), self.compute_dtype)

    def start(self, batch, length):
        """Returns the vectors before the first token: `last`, zeros `[B, size, D]`."""
        return {"last": self._before(batch)}

    def step(self, x, valid, *, state, cursor):
        """Continues the row: returns windows `[B, T, size * D]` and the new state."""
        windows, last = self._windows(x, valid, state["last"])
        return windows, {"last": last}

    def _before(self, batch):
        return ops.zeros((batch, self.size, self.width), self.compute_dtype)

    def _windows(self, x, valid, last):
        """Returns the windows, and the last `size` real vectors of each row."""
        batch, time = ops.shape(x)[0], ops.shape(x)[1]
        x = ops.concatenate([last, ops.cast(x, self.compute_dtype)], axis=1)
        real = ops.concatenate([ops.ones((batch, self.size), "bool"), valid], axis=1)
        # Where the first real vector of a row stands, then the second, ...; pads come last.
        slots = ops.arange(self.size + time)
        places = ops.argsort(ops.where(real, slots, slots + self.size + time), axis=1)
        # The number of real vectors before each window: `size` or more.
        begins = ops.cumsum(ops.cast(valid, "int32"), axis=1)
        within = ops.arange(self.size, dtype="int32")
        windows = _gather(x, places, begins[:, :, None] + within)
        last = _gather(x, places, begins[:, -1:] + within)
        return ops.reshape(windows, (batch, time, self.size * self.width)), last


def _gather(x, places, indices):
    """Returns the vectors `[B, any, D]` that stand at `places[indices]` in each row."""
    flat = ops.reshape(indices, (ops.shape(indices)[0], -1))
    slots = ops.take_along_axis(places, ops.cast(flat, places.dtype), axis=1)
    return ops.take_along_axis(x, slots[:, :, None], axis=1)
