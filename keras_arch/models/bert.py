"""BERT (Devlin et al. 2019): learned positions, types of token, post-norm, a pooler."""

import dataclasses

import keras

from keras_arch.checks import check_positive
from keras_arch.models.decoder_only import token_inputs, token_positions
from keras_arch.models.encoder_only import (
    EncoderConfig,
    embedded,
    embedding_layers,
    encoder_stack,
    pooled,
    type_inputs,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class BERTConfig(EncoderConfig):
    """The shape of a BERT; fields as in `EncoderConfig`, and:

    Attributes:
        types: Types of token: the texts of a row.
    """

    types: int = 2

    def __post_init__(self):
        super().__post_init__()
        check_positive(types=self.types)


def _published(vocabulary_size, width, depth, heads):
    return BERTConfig(
        vocabulary_size=vocabulary_size,
        width=width,
        layers=depth,
        heads=heads,
        context_length=512,
    )


#: The published sizes, without their dropout; `base` and `large` are uncased: 109,482,240,
#: 335,141,888, 108,310,272 and 333,579,264 parameters with the pooler, without the heads of
#: pretraining.
SIZES = {
    "base": _published(30522, 768, 12, 12),
    "large": _published(30522, 1024, 24, 16),
    "base_cased": _published(28996, 768, 12, 12),
    "large_cased": _published(28996, 1024, 24, 16),
}


def bert(config):
    """Builds a BERT without a head; `keras_arch.models` has heads to put on it.

    Args:
        config: A `BERTConfig`.

    Returns:
        A functional model from `token_ids` int32 `[B, T]`, `valid` bool `[B, T]` and `type_ids`
        int32 `[B, T]` (0 for the first text of a pair, 1 for the second) to a dict: `hidden`
        `[B, T, D]`, the vectors of the tokens, and `pooled` `[B, D]`, the first token's through a
        matrix and tanh. The published count includes that pooler; a head that does not read it
        leaves it out.
    """
    inputs = token_inputs() | type_inputs()
    positions = token_positions(inputs)
    tables = embedding_layers(config, config.types)
    x = embedded(config, tables, inputs["token_ids"], positions, inputs["type_ids"])
    x = encoder_stack(config, x, positions, inputs["valid"])
    outputs = {"hidden": x, "pooled": pooled(config, x, inputs["valid"])}
    return keras.Model(inputs, outputs, name="bert")
