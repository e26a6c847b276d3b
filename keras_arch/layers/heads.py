"""Output heads."""

import keras
from keras import ops

from keras_arch.checks import check_positive
from keras_arch.layers.part import Part, fresh
from keras_arch.layers.products import as_rows


@keras.saving.register_keras_serializable(package="keras_arch")
class CausalLMHead(Part):
    """Scores every token of the vocabulary by a matrix of its own.

    A head that shares the embedding's table is `TokenEmbedding` called with `reverse=True`.

    Args:
        vocabulary_size: V.
        use_bias: Whether logits have a bias.
        logit_cap: Optional c: logits become `c * tanh(logits / c)` (Gemma 2, 2024, section 2).
        kernel_initializer: Initializer of the matrix.

    Call arguments:
        x: float `[B, T, D]`.

    Returns:
        Logits, float `[B, T, V]`.
    """

    def __init__(
        self,
        vocabulary_size,
        use_bias=False,
        logit_cap=None,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive(vocabulary_size=vocabulary_size)
        if logit_cap is not None and not logit_cap > 0:
            raise ValueError(f"logit_cap must be positive; received logit_cap={logit_cap}.")
        self.vocabulary_size = vocabulary_size
        self.use_bias = use_bias
        self.logit_cap = logit_cap
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.projection = keras.layers.Dense(
            vocabulary_size,
            use_bias=use_bias,
            kernel_initializer=fresh(self.kernel_initializer),
            dtype=self.dtype_policy,
            name="projection",
        )

    def build(self, x_shape):
        self.projection.build((None, x_shape[-1]))

    def call(self, x):
        logits = as_rows(self.projection, x)
        if self.logit_cap is not None:
            logits = self.logit_cap * ops.tanh(logits / self.logit_cap)
        return logits

    def compute_output_spec(self, x):
        return keras.KerasTensor((*x.shape[:-1], self.vocabulary_size), self.compute_dtype)
