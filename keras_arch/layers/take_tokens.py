"""Some tokens of each row, by their positions."""

import keras
from keras import ops

from keras_arch.layers.part import Part


@keras.saving.register_keras_serializable(package="keras_arch")
class TakeTokens(Part):
    """Takes the vectors at given slots of each row, so that a head scores those alone.

    Call arguments:
        x: float `[B, T, D]`.
        slots: int `[B, M]`, in [0, T).

    Returns:
        float `[B, M, D]`.
    """

    def call(self, x, slots):
        return ops.take_along_axis(x, slots[..., None], axis=1)

    def compute_output_spec(self, x, slots):
        return keras.KerasTensor((*slots.shape, x.shape[-1]), self.compute_dtype)
