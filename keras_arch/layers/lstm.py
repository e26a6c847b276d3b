"""The long short-term memory."""

import keras
from keras import ops

from keras_arch.layers.norms import layer_norm
from keras_arch.layers.recurrent import Recurrent
from keras_arch.layers.recurrent_cell import EPSILON


@keras.saving.register_keras_serializable(package="keras_arch")
class LSTM(Recurrent):
    """Keeps a cell `c` beside `h`, and gates what it forgets, takes in and shows.

    ```
    f, i, c~, o = sigmoid, sigmoid, tanh, sigmoid of the four blocks of x W + h U + b
    c = f * c + i * c~
    h = o * tanh(c)
    ```

    The forget gate's bias starts at 1. With `normalise`, `tanh` reads the layer norm of `c`.

    Source: Hochreiter & Schmidhuber 1997; Gers et al. 2000, section 3 (the forget gate); Jozefowicz
    et al. 2015 (its bias). Arguments as in `Recurrent`.
    """

    gates = 4
    state_names = ("h", "c")
    fused_name = "LSTM"

    def build(self, x_shape):
        super().build(x_shape)
        if self.normalise:
            self.cell_scale = self._add_scale(self.width, "cell_scale")
            self.cell_offset = self.add_weight(
                shape=(self.width,), initializer="zeros", name="cell_offset"
            )

    def combine(self, projected, product, state, shared):
        forget, take, candidate, show = ops.split(projected + product, 4, axis=-1)
        c = ops.sigmoid(forget) * state["c"] + ops.sigmoid(take) * ops.tanh(candidate)
        seen = c
        if self.normalise:
            seen = layer_norm(c, shared["cell_scale"], shared["cell_offset"], EPSILON)
        return {"h": ops.sigmoid(show) * ops.tanh(seen), "c": c}

    def shared(self, batch, inside=False):
        shared = super().shared(batch, inside)
        if self.normalise:
            shared["cell_scale"] = ops.cast(self.cell_scale, "float32")
            shared["cell_offset"] = ops.cast(self.cell_offset, "float32")
        return shared

    def _first_bias(self, shape, dtype):
        ones, zeros = ops.ones(self.width, dtype), ops.zeros(3 * self.width, dtype)
        return ops.concatenate([ones, zeros])
