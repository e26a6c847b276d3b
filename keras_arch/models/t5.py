"""T5 (Raffel et al. 2020): one relative bias a stack, RMS pre-norm, attention without scale."""

import dataclasses

import keras

from keras_arch import layers
from keras_arch.checks import check_positive
from keras_arch.layers.relative_bias import check_buckets
from keras_arch.models.decoder_only import (
    normal,
    token_embedding,
    token_inputs,
    token_logits,
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
class T5Config(EncoderDecoderConfig):
    """The shape of a T5; fields as in `EncoderDecoderConfig`, and:

    Version 1.0 is the default; version 1.1 has `gated=True, activation="gelu_tanh", tied=False`.
    Dropout is also inside attention and feed-forward, and after the norms that end the stacks.

    Attributes:
        head_width: H; default `width / heads`.
        buckets: Buckets of distances, of each relative bias.
        max_distance: Distance from which all share the last bucket.
        gated: Whether the feed-forward networks are gated (Shazeer 2020).
        activation: Of the feed-forward networks.
        tied: Whether the head is the table of source and target, on vectors times `width ** -0.5`.
    """

    norm_epsilon: float = 1e-6
    head_width: int | None = None
    buckets: int = 32
    max_distance: int = 128
    gated: bool = False
    activation: str = "relu"
    tied: bool = True

    def __post_init__(self):
        super().__post_init__()
        if self.head_width is None:
            object.__setattr__(self, "head_width", head_width(self))
        check_positive(head_width=self.head_width)
        check_buckets(self.buckets, self.max_distance)


def _published(width, depth, heads, hidden_width, head_width=64, **version):
    return T5Config(
        vocabulary_size=32128,
        width=width,
        encoder_layers=depth,
        decoder_layers=depth,
        heads=heads,
        hidden_width=hidden_width,
        head_width=head_width,
        **version,
    )


_V1_1 = {"gated": True, "activation": "gelu_tanh", "tied": False}

#: The published sizes, without their dropout. Version 1.0: 60,506,624, 222,903,552, 737,668,096,
#: 2,851,598,336 and 11,307,321,344 parameters; version 1.1: 76,961,152, 247,577,856, 783,150,080,
#: 2,849,757,184 and 11,135,332,352.
SIZES = {
    "small": _published(512, 6, 8, 2048),
    "base": _published(768, 12, 12, 3072),
    "large": _published(1024, 24, 16, 4096),
    "3b": _published(1024, 24, 32, 16384, head_width=128),
    "11b": _published(1024, 24, 128, 65536, head_width=128),
    "v1_1_small": _published(512, 8, 6, 1024, **_V1_1),
    "v1_1_base": _published(768, 12, 12, 2048, **_V1_1),
    "v1_1_large": _published(1024, 24, 16, 2816, **_V1_1),
    "v1_1_xl": _published(2048, 24, 32, 5120, **_V1_1),
    "v1_1_xxl": _published(4096, 24, 64, 10240, **_V1_1),
}


def t5(config):
    """Builds a T5.

    Its weights start from one normal distribution, not from T5's own of each matrix. The decoder's
    input is the target shifted by one, after the pad id in T5's own training.

    Args:
        config: A `T5Config`.

    Returns:
        A functional model from `source_ids` int32 `[B, S]`, `source_valid` bool `[B, S]`,
        `token_ids` int32 `[B, T]` and `valid` bool `[B, T]` to logits `[B, T, V]`.
    """
    inputs = source_inputs() | token_inputs()
    embedding = token_embedding(config, reverse_scale=config.width**-0.5)
    positions, valid = source_positions(inputs), inputs["source_valid"]
    bias = _bias(config, "encoder_bias", bidirectional=True)(positions)
    x = _dropped(config, embedding(inputs["source_ids"]), "source_dropout")
    x = encoder_blocks(config, SUBLAYERS, x, positions, valid, bias)
    memory = as_memory(_dropped(config, _norm(config, "encoder_norm")(x), "memory_dropout"))
    positions = token_positions(inputs)
    bias = _bias(config, "decoder_bias", bidirectional=False)(positions)
    x = _dropped(config, embedding(inputs["token_ids"]), "embedding_dropout")
    x = decoder_blocks(config, SUBLAYERS, x, positions, inputs["valid"], memory, valid, bias)
    x = _dropped(config, _norm(config, "decoder_norm")(x), "output_dropout")
    return keras.Model(inputs, token_logits(config, embedding, x), name="t5")


def _bias(config, name, bidirectional):
    return layers.RelativeBias(
        config.heads,
        config.buckets,
        config.max_distance,
        bidirectional,
        embeddings_initializer=normal(config),
        name=name,
    )


def _attention(config):
    return {
        "heads": config.heads,
        "head_width": config.head_width,
        "scale": 1.0,
        "dropout": config.dropout,
        "kernel_initializer": normal(config),
    }


def _feedforward(config):
    feedforward = layers.GatedFeedForward if config.gated else layers.FeedForward
    return feedforward(
        config.hidden_width,
        activation=config.activation,
        use_bias=False,
        dropout=config.dropout,
        kernel_initializer=normal(config),
        name="feedforward",
    )


def _residual(config, sublayer, name):
    return layers.PreNorm(sublayer, _norm(config, "norm"), config.dropout, name=name)


def _norm(config, name):
    return layers.RMSNorm(config.norm_epsilon, name=name)


def _dropped(config, x, name):
    return layers.Dropout(config.dropout, name=name)(x)


SUBLAYERS = Sublayers(_attention, _feedforward, _residual)
