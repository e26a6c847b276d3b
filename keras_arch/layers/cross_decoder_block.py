"""The decoder block of an encoder-decoder."""

import keras
from keras import ops

from keras_arch.layers.part import Part


@keras.saving.register_keras_serializable(package="keras_arch")
class CrossDecoderBlock(Part):
    """Self-attention, cross-attention, then feed-forward; each wrapped in its residual part.

    ```
    x ── PostNorm(SelfAttention) ── PostNorm(CrossAttention) ── PostNorm(FeedForward) ── y
                                           memory
    ```

    Source: Vaswani et al. 2017, section 3.1.

    Args:
        attention: e.g. `PreNorm(SelfAttention(...), LayerNorm())`.
        cross_attention: e.g. `PreNorm(CrossAttention(...), LayerNorm())`.
        feedforward: e.g. `PreNorm(FeedForward(...), LayerNorm())`.

    Call arguments:
        x: float `[B, T, D]`.
        positions: int `[B, T]`.
        valid: bool `[B, T]`.
        memory: float `[B, S, M]`. To be decoded, a model gives it and `memory_valid` by keyword.
        memory_valid: bool `[B, S]`.
        bias: Optional float `[B or 1, N, T, T]`, of the self-attention.

    Returns:
        float `[B, T, D]`.
    """

    def __init__(self, attention, cross_attention, feedforward, **kwargs):
        super().__init__(**kwargs)
        self.attention = attention
        self.cross_attention = cross_attention
        self.feedforward = feedforward

    def build(self, x_shape):
        for part in self.parts():
            part.build(x_shape)

    def call(self, x, positions, valid, memory, memory_valid, bias=None):
        x = self.attention(x, positions, valid, bias=bias)
        return self.feedforward(self.cross_attention(x, memory, memory_valid))

    def compute_output_spec(self, x, positions, valid, memory, memory_valid, bias=None):
        return keras.KerasTensor(x.shape, self.compute_dtype)

    def attention_weights(self, x, positions, valid, memory, memory_valid, bias=None):
        """Returns the weights over the memory, float32 `[B, N, T, S]`; at pads, zeros."""
        x = self.attention(x, positions, valid, bias=bias)
        weights = self.cross_attention.attention_weights(x, memory, memory_valid)
        return ops.where(valid[:, None, :, None], weights, 0.0)

    def start(self, batch, length, memory, memory_valid):
        """Returns the states of the two attentions."""
        return {
            "attention": self.attention.start(batch, length),
            "cross_attention": self.cross_attention.start(
                batch, length, memory=memory, memory_valid=memory_valid
            ),
        }

    def step(self, x, positions, valid, bias=None, *, state, cursor):
        """Runs the block for a chunk: returns float `[B, T, D]` and the state."""
        x, attention = self.attention.step(
            x, positions, valid, bias=bias, state=state["attention"], cursor=cursor
        )
        x, cross_attention = self.cross_attention.step(
            x, state=state["cross_attention"], cursor=cursor
        )
        return self.feedforward(x), {"attention": attention, "cross_attention": cross_attention}
