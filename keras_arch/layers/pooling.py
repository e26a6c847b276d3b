"""One vector of a row's: the first token's, or all tokens' mean or maximum."""

import keras
from keras import ops

from keras_arch.layers.attention_ops import LOWEST
from keras_arch.layers.part import Part


class Pooling(Part):
    """What the poolings share.

    Call arguments:
        x: float `[B, T, D]`.
        valid: bool `[B, T]`, True = real token; pads may stand on either side.

    Returns:
        float `[B, D]`; zeros for a row without real tokens.
    """

    def compute_output_spec(self, x, valid):
        return keras.KerasTensor((x.shape[0], x.shape[2]), self.compute_dtype)


@keras.saving.register_keras_serializable(package="keras_arch")
class FirstToken(Pooling):
    """The vector of the first real token: BERT's `[CLS]` (Devlin et al. 2019, section 3)."""

    def call(self, x, valid):
        real = ops.cast(valid, "int32")
        first = ops.logical_and(valid, ops.cumsum(real, axis=1) == 1)
        return ops.sum(ops.where(first[..., None], x, 0.0), axis=1)


@keras.saving.register_keras_serializable(package="keras_arch")
class MeanTokens(Pooling):
    """The mean of the real tokens' vectors (Reimers & Gurevych 2019, section 3)."""

    def call(self, x, valid):
        # A half-precision sum of many tokens would lose the small ones.
        x = ops.where(valid[..., None], ops.cast(x, "float32"), 0.0)
        count = ops.sum(ops.cast(valid, "float32"), axis=1, keepdims=True)
        return ops.cast(ops.sum(x, axis=1) / ops.maximum(count, 1.0), self.compute_dtype)


@keras.saving.register_keras_serializable(package="keras_arch")
class MaxTokens(Pooling):
    """The largest entry of the real tokens in each column (Reimers & Gurevych 2019, section 3)."""

    def call(self, x, valid):
        top = ops.max(ops.where(valid[..., None], ops.cast(x, "float32"), LOWEST), axis=1)
        return ops.cast(ops.where(ops.any(valid, axis=1)[:, None], top, 0.0), self.compute_dtype)
