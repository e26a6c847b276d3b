"""RoBERTa (Liu et al. 2019): BERT's network with byte pairs and without types of token."""

import dataclasses

import keras
from keras import ops

from keras_arch.checks import check_count
from keras_arch.models.decoder_only import token_inputs, token_positions
from keras_arch.models.encoder_only import (
    EncoderConfig,
    embedded,
    embedding_layers,
    encoder_stack,
    pooled,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RoBERTaConfig(EncoderConfig):
    """The shape of a RoBERTa; fields as in `EncoderConfig`, and:

    Attributes:
        position_offset: Rows of the position table that no position reads; see
            `LearnedPositions`. The published counts include them.
    """

    norm_epsilon: float = 1e-5
    position_offset: int = 2

    def __post_init__(self):
        super().__post_init__()
        check_count(position_offset=self.position_offset)


def _published(width, depth, heads):
    return RoBERTaConfig(
        vocabulary_size=50265, width=width, layers=depth, heads=heads, context_length=512
    )


#: The published sizes, without their dropout: 124,645,632 and 355,359,744 parameters with the
#: pooler, without the head of pretraining.
SIZES = {"base": _published(768, 12, 12), "large": _published(1024, 24, 16)}


def roberta(config):
    """Builds a RoBERTa without a head.

    All tokens have one type, whose vector the published counts include.

    Args:
        config: A `RoBERTaConfig`.

    Returns:
        A functional model from `token_ids` int32 `[B, T]` and `valid` bool `[B, T]` to a dict:
        `hidden` `[B, T, D]` and `pooled` `[B, D]`, as `bert` has them. Its own pretraining trains
        no pooler, but published counts include one.
    """
    inputs = token_inputs()
    positions = token_positions(inputs)
    tables = embedding_layers(config, types=1, offset=config.position_offset)
    types = ops.zeros_like(inputs["token_ids"])
    x = embedded(config, tables, inputs["token_ids"], positions, types)
    x = encoder_stack(config, x, positions, inputs["valid"])
    outputs = {"hidden": x, "pooled": pooled(config, x, inputs["valid"])}
    return keras.Model(inputs, outputs, name="roberta")
