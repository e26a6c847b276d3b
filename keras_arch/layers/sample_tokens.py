"""Tokens drawn by their scores, as data for a model that reads them."""

import keras
from keras import ops

from keras_arch.layers.part import Part


@keras.saving.register_keras_serializable(package="keras_arch")
class SampleTokens(Part):
    """Draws a token from the softmax of each row of logits. No gradient flows through the choice.

    Args:
        seed: Of the draws; None: other ones in each process.

    Call arguments:
        logits: float `[B, M, V]`.

    Returns:
        int32 `[B, M]`.
    """

    def __init__(self, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.seed = seed
        self.seeds = keras.random.SeedGenerator(seed)

    def call(self, logits):
        batch, count, size = ops.shape(logits)
        rows = ops.reshape(ops.cast(ops.stop_gradient(logits), "float32"), (-1, size))
        drawn = keras.random.categorical(rows, 1, dtype="int32", seed=self.seeds)
        return ops.reshape(drawn, (batch, count))

    def compute_output_spec(self, logits):
        return keras.KerasTensor(logits.shape[:-1], "int32")
