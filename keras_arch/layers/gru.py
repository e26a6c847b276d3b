"""The gated recurrent unit."""

import keras
from keras import ops

from keras_arch.layers.recurrent import Recurrent


@keras.saving.register_keras_serializable(package="keras_arch")
class GRU(Recurrent):
    """Mixes the old `h` with a candidate that sees as much of it as the reset gate lets through.

    ```
    z, r = sigmoid of the first two blocks of x W + h U + b
    h~ = tanh of the third block of x W + b, plus r * (third block of h U, + b_h)
    h = z * h + (1 - z) * h~
    ```

    The reset gate acts after the product, as in cuDNN, so that there is one product a step.

    Source: Cho et al. 2014, section 2.3, whose reset gate acts before the product. Arguments as in
    `Recurrent`.
    """

    gates = 3
    fused_name = "GRU"

    def build(self, x_shape):
        super().build(x_shape)
        self.recurrent_bias = self.add_weight(
            shape=(self.width,), initializer="zeros", name="recurrent_bias"
        )

    def combine(self, projected, product, state, shared):
        x_update, x_reset, x_candidate = ops.split(projected, 3, axis=-1)
        h_update, h_reset, h_candidate = ops.split(product, 3, axis=-1)
        update, reset = ops.sigmoid(x_update + h_update), ops.sigmoid(x_reset + h_reset)
        candidate = ops.tanh(x_candidate + reset * (h_candidate + shared["recurrent_bias"]))
        return {"h": candidate + update * (ops.cast(state["h"], "float32") - candidate)}

    def shared(self, batch, inside=False):
        return {
            **super().shared(batch, inside),
            "recurrent_bias": ops.cast(self.recurrent_bias, "float32"),
        }

    def _fused_biases(self):
        zeros = ops.zeros(2 * self.width, self.compute_dtype)
        candidate = ops.cast(self.recurrent_bias, self.compute_dtype)
        return ops.cast(self.bias, self.compute_dtype), ops.concatenate([zeros, candidate])
