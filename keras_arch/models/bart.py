"""BART (Lewis et al. 2019): learned positions, a norm after the embedding, post-norm, tied head."""

import dataclasses

import keras

from keras_arch import layers
from keras_arch.checks import check_count, check_positive
from keras_arch.models.decoder_only import (
    normal,
    token_embedding,
    token_inputs,
    token_positions,
)
from keras_arch.models.encoder_decoder import (
    EncoderDecoderConfig,
    Sublayers,
    as_memory,
    decoder_blocks,
    encoder_blocks,
    head_width,
    source_positions,
)
from keras_arch.models.seq2seq import source_inputs


@dataclasses.dataclass(frozen=True, kw_only=True)
class BARTConfig(EncoderDecoderConfig):
    """The shape of a BART; fields as in `EncoderDecoderConfig`, and:

    Dropout is also inside attention and feed-forward.

    Attributes:
        context_length: Longest source and longest target, in tokens.
        position_offset: Rows of both position tables that no position reads; see
            `LearnedPositions`. The published counts include them.
        activation: Of the feed-forward networks.
    """

    context_length: int
    position_offset: int = 2
    activation: str = "gelu"

    def __post_init__(self):
        super().__post_init__()
        check_positive(context_length=self.context_length)
        check_count(position_offset=self.position_offset)
        head_width(self)


def _published(width, depth, heads):
    return BARTConfig(
        vocabulary_size=50265,
        width=width,
        encoder_layers=depth,
        decoder_layers=depth,
        heads=heads,
        context_length=1024,
    )


#: The published sizes, without their dropout: 139,420,416 and 406,291,456 parameters. The bias of
#: zeros that checkpoints hold for the logits is no parameter there.
SIZES = {"base": _published(768, 6, 12), "large": _published(1024, 12, 16)}


def bart(config):
    """Builds a BART.

    The decoder's input is the target shifted by one, after the end id in BART's own training.

    Args:
        config: A `BARTConfig`.

    Returns:
        A functional model from `source_ids` int32 `[B, S]`, `source_valid` bool `[B, S]`,
        `token_ids` int32 `[B, T]` and `valid` bool `[B, T]` to logits `[B, T, V]`.
    """
    inputs = source_inputs() | token_inputs()
    embedding = token_embedding(config)
    positions, valid = source_positions(inputs), inputs["source_valid"]
    x = _embedded(config, embedding(inputs["source_ids"]), positions, "source")
    memory = as_memory(encoder_blocks(config, SUBLAYERS, x, positions, valid))
    positions = token_positions(inputs)
    x = _embedded(config, embedding(inputs["token_ids"]), positions, "target")
    x = decoder_blocks(config, SUBLAYERS, x, positions, inputs["valid"], memory, valid)
    return keras.Model(inputs, embedding(x, reverse=True), name="bart")


def _embedded(config, x, positions, name):
    places = layers.LearnedPositions(
        config.context_length,
        config.width,
        embeddings_initializer=normal(config),
        offset=config.position_offset,
        name=f"{name}_position_table",
    )
    x = keras.layers.Add(name=f"{name}_embedded")([x, places(positions)])
    x = _norm(config, f"{name}_embedding_norm")(x)
    return layers.Dropout(config.dropout, name=f"{name}_dropout")(x)


def _attention(config):
    return {
        "heads": config.heads,
        "head_width": head_width(config),
        "use_bias": True,
        "dropout": config.dropout,
        "kernel_initializer": normal(config),
    }


def _feedforward(config):
    return layers.FeedForward(
        config.hidden_width,
        activation=config.activation,
        dropout=config.dropout,
        kernel_initializer=normal(config),
        name="feedforward",
    )


def _residual(config, sublayer, name):
    return layers.PostNorm(sublayer, _norm(config, "norm"), config.dropout, name=name)


def _norm(config, name):
    return layers.LayerNorm(config.norm_epsilon, name=name)


SUBLAYERS = Sublayers(_attention, _feedforward, _residual)
