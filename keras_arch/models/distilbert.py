"""DistilBERT (Sanh et al. 2019): half of BERT's blocks, without types of token and pooler."""

import dataclasses

import keras

from keras_arch.models.decoder_only import token_inputs, token_positions
from keras_arch.models.encoder_only import (
    EncoderConfig,
    embedded,
    embedding_layers,
    encoder_stack,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DistilBERTConfig(EncoderConfig):
    """The shape of a DistilBERT; fields as in `EncoderConfig`."""


#: The published size, without its dropout; it is uncased: 66,362,880 parameters without the head
#: of pretraining.
SIZES = {
    "base": DistilBERTConfig(
        vocabulary_size=30522, width=768, layers=6, heads=12, context_length=512
    )
}


def distilbert(config):
    """Builds a DistilBERT without a head.

    Args:
        config: A `DistilBERTConfig`.

    Returns:
        A functional model from `token_ids` int32 `[B, T]` and `valid` bool `[B, T]` to a dict:
        `hidden` `[B, T, D]`, the vectors of the tokens.
    """
    inputs = token_inputs()
    positions = token_positions(inputs)
    x = embedded(config, embedding_layers(config), inputs["token_ids"], positions)
    outputs = {"hidden": encoder_stack(config, x, positions, inputs["valid"])}
    return keras.Model(inputs, outputs, name="distilbert")
