"""A bottleneck behind a sublayer: few weights, by which a trained model is adapted."""

import keras

from keras_arch.checks import check_positive
from keras_arch.layers.activations import get_activation
from keras_arch.layers.norms import LayerNorm
from keras_arch.layers.part import Part, fresh


@keras.saving.register_keras_serializable(package="keras_arch")
class Adapter(Part):
    """`h + up(activation(down(norm(h))))`; `up` begins at zero, so that all of it begins as `h`.

    Source: Houlsby et al. 2019, section 2.1; with the norm of Bapna & Firat 2019.

    Args:
        width: Of the bottleneck, between the two matrices.
        activation: Name or function.
        kernel_initializer: Initializer of the first matrix.

    Call arguments:
        h: float `[B, T, D]`.

    Returns:
        float `[B, T, D]`.

    Raises:
        ValueError: If `width` is not positive.
    """

    def __init__(self, width, activation="relu", kernel_initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        check_positive(width=width)
        self.width = width
        self.activation = get_activation(activation)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.norm = LayerNorm(dtype=self.dtype_policy, name="norm")

    def build(self, h_shape):
        self.norm.build(h_shape)
        self.down = self._matrix(self.width, fresh(self.kernel_initializer), "down")
        self.down.build(h_shape)
        self.up = self._matrix(h_shape[-1], "zeros", "up")
        self.up.build((*h_shape[:-1], self.width))

    def _matrix(self, units, initializer, name):
        return keras.layers.Dense(
            units, kernel_initializer=initializer, dtype=self.dtype_policy, name=name
        )

    def call(self, h):
        return h + self.up(self.activation(self.down(self.norm(h))))

    def compute_output_spec(self, h):
        return keras.KerasTensor(h.shape, self.compute_dtype)
