"""Encoder blocks: self-attention, then a feed-forward network, for a row that is read whole."""

import keras

from keras_arch.layers.part import Part


@keras.saving.register_keras_serializable(package="keras_arch")
class EncoderBlock(Part):
    """Self-attention, then feed-forward; each comes wrapped in its residual part.

    ```
    x ── PostNorm(SelfAttention, causal=False) ── PostNorm(FeedForward) ── y
    ```

    Source: Vaswani et al. 2017, section 3.1.

    Args:
        attention: e.g. `PreNorm(SelfAttention(..., causal=False), LayerNorm())`.
        feedforward: e.g. `PreNorm(FeedForward(...), LayerNorm())`.

    Call arguments:
        x: float `[B, T, D]`.
        positions: int `[B, T]`.
        valid: bool `[B, T]`.
        bias: Optional float `[B or 1, N, T, T]`.
        segment_ids: Optional int `[B, T]`.

    Returns:
        float `[B, T, D]`.
    """

    def __init__(self, attention, feedforward, **kwargs):
        super().__init__(**kwargs)
        self.attention = attention
        self.feedforward = feedforward

    def build(self, x_shape):
        self.attention.build(x_shape)
        self.feedforward.build(x_shape)

    def call(self, x, positions, valid, bias=None, segment_ids=None):
        x = self.attention(x, positions, valid, bias=bias, segment_ids=segment_ids)
        return self.feedforward(x)

    def compute_output_spec(self, x, positions, valid, bias=None, segment_ids=None):
        return keras.KerasTensor(x.shape, self.compute_dtype)
