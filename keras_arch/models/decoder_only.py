"""What the decoder-only models share: config fields, inputs, initializers, stack, head."""

import dataclasses

import keras

from keras_arch.checks import check_positive, check_positive_number, check_rate
from keras_arch.layers import (
    CausalLMHead,
    DecoderBlock,
    Dropout,
    PreNorm,
    TokenEmbedding,
    TokenPositions,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class StackConfig:
    """The fields that all models of one stack of Transformer blocks share.

    Architecture only: no dtype, path or sampler.

    Attributes:
        vocabulary_size: V.
        width: D, of the residual stream.
        layers: Number of blocks.
        heads: N, query heads; divides `width`.
        context_length: Longest sequence, in tokens.
        dropout: Rate after the embedding, inside attention and after each sublayer.
        norm_epsilon: Added to the variance in norms.
        initializer_range: Standard deviation of the initial matrices.
    """

    vocabulary_size: int
    width: int
    layers: int
    heads: int
    context_length: int
    dropout: float = 0.0
    norm_epsilon: float = 1e-5
    initializer_range: float = 0.02

    def __post_init__(self):
        for field in ("vocabulary_size", "width", "layers", "heads", "context_length"):
            check_positive(**{field: getattr(self, field)})
        check_rate(dropout=self.dropout)
        check_positive_number(
            norm_epsilon=self.norm_epsilon, initializer_range=self.initializer_range
        )
        if self.width % self.heads:
            raise ValueError(
                f"heads must divide width; received width={self.width}, heads={self.heads}."
            )

    @property
    def head_width(self):
        """H."""
        return self.width // self.heads


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecoderConfig(StackConfig):
    """The fields that all decoder-only models share; fields as in `StackConfig`, and:

    Attributes:
        tied: Whether the head shares the embedding's table.
    """

    tied: bool = True


def token_inputs(packed=False):
    """Returns the symbolic inputs of a decoder-only model, by name.

    `token_ids` int32 `[B, T]` and `valid` bool `[B, T]`; with `packed` also `segment_ids` int32
    `[B, T]`, the document of each token.
    """
    inputs = {
        "token_ids": keras.Input((None,), dtype="int32", name="token_ids"),
        "valid": keras.Input((None,), dtype="bool", name="valid"),
    }
    if packed:
        inputs["segment_ids"] = keras.Input((None,), dtype="int32", name="segment_ids")
    return inputs


def normal(config):
    """Returns the initializer of matrices and tables."""
    return keras.initializers.RandomNormal(stddev=config.initializer_range)


def block_initializers(config):
    """Returns the initializers of a sublayer, by argument name.

    Matrices that write into the residual stream start smaller, by `sqrt(2 * layers)`, the number of
    writers. Source: Radford et al. 2019, section 2.3.
    """
    stddev = config.initializer_range / (2 * config.layers) ** 0.5
    return {
        "kernel_initializer": normal(config),
        "output_initializer": keras.initializers.RandomNormal(stddev=stddev),
    }


def token_embedding(config, width=None, **options):
    """Returns the layer that embeds tokens, by default in the stream's width.

    The options are more of `TokenEmbedding`.
    """
    return TokenEmbedding(
        config.vocabulary_size,
        config.width if width is None else width,
        embeddings_initializer=normal(config),
        name="tokens",
        **options,
    )


def decoder_stack(config, x, positions, inputs, block, norm):
    """Wires dropout, the decoder blocks and the final norm.

    Args:
        config: A `DecoderConfig`.
        x: Embedded tokens, symbolic `[B, T, D]`.
        positions: Symbolic int `[B, T]`.
        inputs: What `token_inputs` returned.
        block: Function of config and name that returns a block.
        norm: Function of config and name that returns a norm.
    """
    rest = {name: inputs[name] for name in inputs if name == "segment_ids"}
    x = Dropout(config.dropout, name="embedding_dropout")(x)
    for i in range(config.layers):
        x = block(config, f"block_{i}")(x, positions, inputs["valid"], **rest)
    return norm(config, "final_norm")(x)


def pre_norm_block(config, attention, feedforward, norm, name):
    """Returns a `DecoderBlock` of two bare sublayers, each in a `PreNorm`."""
    return DecoderBlock(
        PreNorm(attention, norm(config, "norm"), config.dropout, name="attention"),
        PreNorm(feedforward, norm(config, "norm"), config.dropout, name="feedforward"),
        name=name,
    )


def token_positions(inputs, context_length=None):
    """Returns the positions of the tokens, symbolic int `[B, T]`."""
    rest = [inputs[name] for name in inputs if name == "segment_ids"]
    return TokenPositions(context_length, name="positions")(inputs["valid"], *rest)


def token_logits(config, embedding, x):
    """Returns logits `[B, T, V]` by the embedding's table or by a matrix of the head's own."""
    if config.tied:
        return embedding(x, reverse=True)
    head = CausalLMHead(config.vocabulary_size, kernel_initializer=normal(config), name="head")
    return head(x)
