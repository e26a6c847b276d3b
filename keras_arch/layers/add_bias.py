"""A bias for what has none of its own, such as the scores of a tied table."""

import keras
from keras import ops

from keras_arch.layers.part import Part


@keras.saving.register_keras_serializable(package="keras_arch")
class AddBias(Part):
    """Adds a learned vector, zeros at first.

    Call arguments:
        x: float `[..., D]`.

    Returns:
        float `[..., D]`.
    """

    def build(self, x_shape):
        self.bias = self.add_weight(shape=x_shape[-1:], initializer="zeros", name="bias")

    def call(self, x):
        return x + ops.cast(self.bias, self.compute_dtype)

    def compute_output_spec(self, x):
        return keras.KerasTensor(x.shape, self.compute_dtype)
