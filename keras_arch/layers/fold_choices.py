"""Rows to choose from, one below the other."""

import keras
from keras import ops

from keras_arch.layers.part import Part


@keras.saving.register_keras_serializable(package="keras_arch")
class FoldChoices(Part):
    """Makes a row of the batch of each choice.

    Call arguments:
        x: `[B, C, T]`, of any type.

    Returns:
        `[B * C, T]`.
    """

    def call(self, x):
        return ops.reshape(x, (-1, ops.shape(x)[2]))

    def compute_output_spec(self, x):
        return keras.KerasTensor((None, x.shape[2]), x.dtype)
