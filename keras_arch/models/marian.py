"""Marian (Junczys-Dowmunt et al. 2018), of the OPUS-MT translators: the Transformer, biased logits.

Its positions have all sines before all cosines; there is no norm after the embedding.
"""

import dataclasses

import keras

from keras_arch import layers
from keras_arch.checks import check_positive
from keras_arch.models.bart import SUBLAYERS
from keras_arch.models.decoder_only import token_embedding, token_inputs, token_positions
from keras_arch.models.encoder_decoder import (
    EncoderDecoderConfig,
    as_memory,
    decoder_blocks,
    encoder_blocks,
    head_width,
    source_positions,
)
from keras_arch.models.seq2seq import source_embedding, source_inputs


@dataclasses.dataclass(frozen=True, kw_only=True)
class MarianConfig(EncoderDecoderConfig):
    """The shape of a Marian; fields as in `EncoderDecoderConfig`, and:

    Dropout is also inside attention and feed-forward.

    Attributes:
        context_length: Longest source and longest target, in tokens.
        activation: Of the feed-forward networks.
        source_vocabulary_size: Of a table of the source's own; None: source and target share one.
    """

    context_length: int
    activation: str = "silu"
    source_vocabulary_size: int | None = None

    def __post_init__(self):
        super().__post_init__()
        head_width(self)
        check_positive(context_length=self.context_length)
        if self.width % 2:
            raise ValueError(
                f"width must be even for sinusoidal positions; received width={self.width}."
            )
        if self.source_vocabulary_size is not None:
            check_positive(source_vocabulary_size=self.source_vocabulary_size)


#: The size of most OPUS-MT translators, without its dropout; each has a vocabulary of its own, here
#: that of the default of `transformers`: 73,944,309 parameters, those of the logits' bias included.
SIZES = {
    "base": MarianConfig(
        vocabulary_size=58101,
        width=512,
        encoder_layers=6,
        decoder_layers=6,
        heads=8,
        context_length=512,
    )
}


def marian(config):
    """Builds a Marian.

    The decoder's input is the target shifted by one, after the pad id in the published ones, which
    must never write that id. This keeps them from it, in whatever way tokens are chosen:

    ```
    bias = model.get_layer("logits_bias").bias
    bias.assign(ops.where(ops.arange(config.vocabulary_size) == pad_id, -1e9, bias))
    ```

    Args:
        config: A `MarianConfig`.

    Returns:
        A functional model from `source_ids` int32 `[B, S]`, `source_valid` bool `[B, S]`,
        `token_ids` int32 `[B, T]` and `valid` bool `[B, T]` to logits `[B, T, V]`.
    """
    inputs = source_inputs() | token_inputs()
    embedding = token_embedding(config, scale=config.width**0.5)
    sinusoids = layers.SinusoidalPositions(config.width, layout="half_split", name="sinusoids")

    def embed(embedding, token_ids, positions, name):
        x = [embedding(token_ids), sinusoids(positions)]
        x = keras.layers.Add(name=f"{name}_embedded")(x)
        return layers.Dropout(config.dropout, name=f"{name}_dropout")(x)

    positions = source_positions(inputs, config.context_length)
    valid = inputs["source_valid"]
    x = embed(source_embedding(config, embedding), inputs["source_ids"], positions, "source")
    memory = as_memory(encoder_blocks(config, SUBLAYERS, x, positions, valid))
    positions = token_positions(inputs, config.context_length)
    x = embed(embedding, inputs["token_ids"], positions, "target")
    x = decoder_blocks(config, SUBLAYERS, x, positions, inputs["valid"], memory, valid)
    logits = layers.AddBias(name="logits_bias")(embedding(x, reverse=True))
    return keras.Model(inputs, logits, name="marian")
