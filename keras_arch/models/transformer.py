"""The Transformer (Vaswani et al. 2017): sinusoidal positions, post-norm, one shared table."""

import dataclasses

import keras

from keras_arch import layers
from keras_arch.checks import check_positive
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
from keras_arch.models.seq2seq import check_one_of, source_embedding, source_inputs

RESIDUALS = {"post": layers.PostNorm, "pre": layers.PreNorm}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TransformerConfig(EncoderDecoderConfig):
    """The shape of a Transformer; fields as in `EncoderDecoderConfig`, and:

    Dropout is where section 5.4 of the paper has it, not inside attention or feed-forward.

    Attributes:
        activation: Of the feed-forward networks.
        source_vocabulary_size: Of a table of the source's own; None: source and target share one.
        tied: Whether the head shares the target's table.
        norm_order: "post": norm after each residual sum, as printed; "pre": before each sublayer
            and at the end of both stacks (Xiong et al. 2020), which trains without warmup.
    """

    norm_epsilon: float = 1e-6
    activation: str = "relu"
    source_vocabulary_size: int | None = None
    tied: bool = True
    norm_order: str = "post"

    def __post_init__(self):
        super().__post_init__()
        head_width(self)
        if self.width % 2:
            raise ValueError(
                f"width must be even for sinusoidal positions; received width={self.width}."
            )
        if self.source_vocabulary_size is not None:
            check_positive(source_vocabulary_size=self.source_vocabulary_size)
        check_one_of(norm_order=(self.norm_order, tuple(RESIDUALS)))


def _published(width, heads, dropout):
    return TransformerConfig(
        vocabulary_size=37000,
        width=width,
        encoder_layers=6,
        decoder_layers=6,
        heads=heads,
        dropout=dropout,
    )


#: Table 3 of the paper, which prints 65 and 213 million parameters. With a vocabulary of 37,000
#: (section 5.1: "about 37000 tokens"), its equations count to 63,045,632 and 214,171,648.
SIZES = {"base": _published(512, 8, 0.1), "big": _published(1024, 16, 0.3)}


def transformer(config):
    """Builds a Transformer.

    The decoder's input is the target shifted by one (see `keras_arch.objectives.next_token`).

    Args:
        config: A `TransformerConfig`.

    Returns:
        A functional model from `source_ids` int32 `[B, S]`, `source_valid` bool `[B, S]`,
        `token_ids` int32 `[B, T]` and `valid` bool `[B, T]` to logits `[B, T, V]`.
    """
    inputs = source_inputs() | token_inputs()
    embedding = token_embedding(config, scale=config.width**0.5)
    sinusoids = layers.SinusoidalPositions(config.width, name="sinusoids")

    def embed(embedding, token_ids, positions, name):
        x = [embedding(token_ids), sinusoids(positions)]
        x = keras.layers.Add(name=f"{name}_embedded")(x)
        return layers.Dropout(config.dropout, name=f"{name}_dropout")(x)

    positions, valid = source_positions(inputs), inputs["source_valid"]
    x = embed(source_embedding(config, embedding), inputs["source_ids"], positions, "source")
    x = encoder_blocks(config, SUBLAYERS, x, positions, valid)
    memory = as_memory(_final_norm(config, x, "encoder_norm"))
    positions = token_positions(inputs)
    x = embed(embedding, inputs["token_ids"], positions, "target")
    x = decoder_blocks(config, SUBLAYERS, x, positions, inputs["valid"], memory, valid)
    x = _final_norm(config, x, "decoder_norm")
    return keras.Model(inputs, token_logits(config, embedding, x), name="transformer")


def _attention(config):
    return {
        "heads": config.heads,
        "head_width": head_width(config),
        "kernel_initializer": normal(config),
    }


def _feedforward(config):
    return layers.FeedForward(
        config.hidden_width,
        activation=config.activation,
        kernel_initializer=normal(config),
        name="feedforward",
    )


def _residual(config, sublayer, name):
    residual = RESIDUALS[config.norm_order]
    return residual(sublayer, _norm(config, "norm"), config.dropout, name=name)


def _final_norm(config, x, name):
    return _norm(config, name)(x) if config.norm_order == "pre" else x


def _norm(config, name):
    return layers.LayerNorm(config.norm_epsilon, name=name)


SUBLAYERS = Sublayers(_attention, _feedforward, _residual)
