"""What the Transformers with encoder and decoder share: config fields, blocks."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import keras

from keras_arch.checks import check_positive, check_positive_number, check_rate
from keras_arch.layers import (
    CrossAttention,
    CrossDecoderBlock,
    EncoderBlock,
    SelfAttention,
    TokenPositions,
)

#: Name of the layer that gives the encoder's output.
MEMORY = "source_memory"


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderDecoderConfig:
    """The fields that all Transformers with encoder and decoder share. Architecture only.

    Attributes:
        vocabulary_size: V, of the target.
        width: D, of the residual stream.
        encoder_layers: Number of encoder blocks.
        decoder_layers: Number of decoder blocks.
        heads: N.
        hidden_width: Width of the feed-forward networks; default `4 * width`.
        dropout: Rate after the embedding and after each sublayer.
        norm_epsilon: Added to the variance in norms.
        initializer_range: Standard deviation of the initial matrices and tables.
    """

    vocabulary_size: int
    width: int
    encoder_layers: int
    decoder_layers: int
    heads: int
    hidden_width: int | None = None
    dropout: float = 0.0
    norm_epsilon: float = 1e-5
    initializer_range: float = 0.02

    def __post_init__(self):
        if self.hidden_width is None:
            check_positive(width=self.width)
            object.__setattr__(self, "hidden_width", 4 * self.width)
        for field in ("vocabulary_size", "width", "encoder_layers", "decoder_layers", "heads"):
            check_positive(**{field: getattr(self, field)})
        check_positive(hidden_width=self.hidden_width)
        check_rate(dropout=self.dropout)
        check_positive_number(
            norm_epsilon=self.norm_epsilon, initializer_range=self.initializer_range
        )


def head_width(config):
    """Returns H of heads that share the width among them.

    Raises:
        ValueError: If N does not divide D.
    """
    if config.width % config.heads:
        raise ValueError(
            f"heads must divide width; received width={config.width}, heads={config.heads}."
        )
    return config.width // config.heads


class Sublayers(NamedTuple):
    """What the blocks of a model are made of: functions of its config.

    Attributes:
        attention: Returns the options that all its attentions share, by argument name.
        feedforward: Returns a feed-forward network.
        residual: Of a sublayer and a name as well; returns the sublayer in its residual part.
    """

    attention: Callable
    feedforward: Callable
    residual: Callable


def encoder_blocks(config, sublayers, x, positions, valid, bias=None):
    """Wires the encoder's blocks.

    Args:
        config: An `EncoderDecoderConfig`.
        sublayers: The model's `Sublayers`.
        x: The embedded source, symbolic `[B, S, D]`.
        positions: Symbolic int `[B, S]`.
        valid: Symbolic bool `[B, S]`.
        bias: Symbolic `[B, N, S, S]` or None.
    """
    for i in range(config.encoder_layers):
        block = encoder_block(config, sublayers, f"encoder_block_{i}")
        x = block(x, positions, valid, bias=bias)
    return x


def encoder_block(config, sublayers, name):
    """Returns one block of an encoder, made of the model's `Sublayers`."""
    attention = SelfAttention(causal=False, name="self_attention", **sublayers.attention(config))
    return EncoderBlock(
        sublayers.residual(config, attention, "attention"),
        sublayers.residual(config, sublayers.feedforward(config), "feedforward"),
        name=name,
    )


def decoder_blocks(config, sublayers, x, positions, valid, memory, memory_valid, bias=None):
    """Wires the decoder's blocks.

    Args:
        config: An `EncoderDecoderConfig`.
        sublayers: The model's `Sublayers`.
        x: The embedded target, symbolic `[B, T, D]`.
        positions: Symbolic int `[B, T]`.
        valid: Symbolic bool `[B, T]`.
        memory: The encoder's output, symbolic `[B, S, D]`.
        memory_valid: Symbolic bool `[B, S]`.
        bias: Symbolic `[B, N, T, T]` or None.
    """
    for i in range(config.decoder_layers):
        options = sublayers.attention(config)
        attention = SelfAttention(name="self_attention", **options)
        cross_attention = CrossAttention(name="cross_attention", **options)
        block = CrossDecoderBlock(
            sublayers.residual(config, attention, "attention"),
            sublayers.residual(config, cross_attention, "cross_attention"),
            sublayers.residual(config, sublayers.feedforward(config), "feedforward"),
            name=f"decoder_block_{i}",
        )
        x = block(x, positions, valid, memory=memory, memory_valid=memory_valid, bias=bias)
    return x


def source_positions(inputs, context_length=None):
    """Returns the positions of the source's tokens, symbolic int `[B, S]`."""
    return TokenPositions(context_length, name="source_positions")(inputs["source_valid"])


def as_memory(x):
    """Names the encoder's output, for those who cut the model there."""
    return keras.layers.Identity(name=MEMORY)(x)
