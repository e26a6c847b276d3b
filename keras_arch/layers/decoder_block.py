"""Decoder blocks: self-attention, then or beside a feed-forward network."""

import keras

from keras_arch.checks import check_rate
from keras_arch.layers.dropout import Dropout
from keras_arch.layers.encoder_block import EncoderBlock
from keras_arch.layers.part import Part


@keras.saving.register_keras_serializable(package="keras_arch")
class DecoderBlock(EncoderBlock):
    """An `EncoderBlock` that decodes step by step, as its attention is causal.

    ```
    x ── PreNorm(SelfAttention) ── PreNorm(FeedForward) ── y
    ```

    GPT-2, LLaMA and others are this block with other parts in it. Arguments, call arguments and
    result are those of `EncoderBlock`.
    """

    def start(self, batch, length):
        """Returns the attention's state."""
        return {"attention": self.attention.start(batch, length)}

    def step(self, x, positions, valid, bias=None, segment_ids=None, *, state, cursor):
        """Runs the block for a chunk: returns float `[B, T, D]` and the state."""
        x, attention = self.attention.step(
            x,
            positions,
            valid,
            bias=bias,
            segment_ids=segment_ids,
            state=state["attention"],
            cursor=cursor,
        )
        return self.feedforward(x), {"attention": attention}


@keras.saving.register_keras_serializable(package="keras_arch")
class ParallelBlock(Part):
    """Self-attention and feed-forward beside each other, on the same normed input.

    `x + drop(attention(norm(x)) + feedforward(norm(x)))`. Source: Wang & Komatsuzaki 2021 (GPT-J);
    Chowdhery et al. 2022 (PaLM), section 2.

    Args:
        attention: A bare `SelfAttention`.
        feedforward: A bare `FeedForward` or `GatedFeedForward`.
        norm: The norm layer both share.
        dropout: Rate of dropped outputs.

    Call arguments and result are those of `DecoderBlock`.
    """

    def __init__(self, attention, feedforward, norm, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        check_rate(dropout=dropout)
        self.attention = attention
        self.feedforward = feedforward
        self.norm = norm
        self.dropout = dropout
        self.drop = Dropout(dropout, dtype=self.dtype_policy, name="drop")

    def build(self, x_shape):
        self.norm.build(x_shape)
        self.attention.build(x_shape)
        self.feedforward.build(x_shape)

    def call(self, x, positions, valid, bias=None, segment_ids=None):
        normed = self.norm(x)
        y = self.attention(normed, positions, valid, bias=bias, segment_ids=segment_ids)
        return x + self.drop(y + self.feedforward(normed))

    def compute_output_spec(self, x, positions, valid, bias=None, segment_ids=None):
        return keras.KerasTensor(x.shape, self.compute_dtype)

    def start(self, batch, length):
        """Returns the attention's state."""
        return {"attention": self.attention.start(batch, length)}

    def step(self, x, positions, valid, bias=None, segment_ids=None, *, state, cursor):
        """Runs the block for a chunk: returns float `[B, T, D]` and the state."""
        normed = self.norm(x)
        y, attention = self.attention.step(
            normed,
            positions,
            valid,
            bias=bias,
            segment_ids=segment_ids,
            state=state["attention"],
            cursor=cursor,
        )
        return x + self.drop(y + self.feedforward(normed)), {"attention": attention}
