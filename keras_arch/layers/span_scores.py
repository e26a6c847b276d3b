"""Scores of the tokens that an answer may start and end at."""

import keras
from keras import ops

from keras_arch.layers.attention_ops import LOWEST
from keras_arch.layers.part import Part, fresh


@keras.saving.register_keras_serializable(package="keras_arch")
class SpanScores(Part):
    """Scores each token as the start and as the end of a span (Devlin et al. 2019, section 4.2).

    Pads get a score so low that no softmax gives them anything.

    Args:
        kernel_initializer: Initializer of the matrix.

    Call arguments:
        x: float `[B, T, D]`.
        valid: bool `[B, T]`, True = real token.

    Returns:
        Logits, float32 `[B, 2, T]`: of the start, of the end.
    """

    def __init__(self, kernel_initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.projection = keras.layers.Dense(
            2,
            kernel_initializer=fresh(self.kernel_initializer),
            dtype=self.dtype_policy,
            name="projection",
        )

    def build(self, x_shape):
        self.projection.build(x_shape)

    def call(self, x, valid):
        scores = ops.cast(ops.swapaxes(self.projection(x), 1, 2), "float32")
        return ops.where(valid[:, None], scores, LOWEST)

    def compute_output_spec(self, x, valid):
        return keras.KerasTensor((x.shape[0], 2, x.shape[1]), "float32")
