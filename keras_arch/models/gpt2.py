"""GPT-2 (Radford et al. 2019): learned positions, pre-norm, tied head."""

import dataclasses

import keras

from keras_arch import layers
from keras_arch.checks import check_positive
from keras_arch.models.decoder_only import (
    DecoderConfig,
    block_initializers,
    decoder_stack,
    normal,
    pre_norm_block,
    token_embedding,
    token_inputs,
    token_logits,
    token_positions,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GPT2Config(DecoderConfig):
    """The shape of a GPT-2; fields as in `DecoderConfig`, and:

    Attributes:
        hidden_width: Width of the feed-forward network; default `4 * width`.
        activation: Of the feed-forward network.
        use_bias: Whether matrices and norms have biases.
    """

    hidden_width: int | None = None
    activation: str = "gelu_tanh"
    use_bias: bool = True

    def __post_init__(self):
        super().__post_init__()
        if self.hidden_width is None:
            object.__setattr__(self, "hidden_width", 4 * self.width)
        check_positive(hidden_width=self.hidden_width)


def _published(width, layers, heads):
    return GPT2Config(
        vocabulary_size=50257, width=width, layers=layers, heads=heads, context_length=1024
    )


#: The published sizes: 124,439,808, 354,823,168, 774,030,080 and 1,557,611,200 parameters.
SIZES = {
    "small": _published(768, 12, 12),
    "medium": _published(1024, 24, 16),
    "large": _published(1280, 36, 20),
    "xl": _published(1600, 48, 25),
}


def gpt2(config, packed=False):
    """Builds a GPT-2.

    Args:
        config: A `GPT2Config`.
        packed: Whether rows hold several documents: adds the input `segment_ids`; positions then
            restart with each document and attention stays inside it.

    Returns:
        A functional model from `token_ids` int32 `[B, T]` and `valid` bool `[B, T]` to logits
        `[B, T, V]`.
    """
    inputs = token_inputs(packed)
    embedding = token_embedding(config)
    positions = token_positions(inputs)
    places = layers.LearnedPositions(
        config.context_length,
        config.width,
        embeddings_initializer=normal(config),
        name="position_table",
    )(positions)
    x = keras.layers.Add(name="embedded")([embedding(inputs["token_ids"]), places])
    x = decoder_stack(config, x, positions, inputs, _block, _norm)
    return keras.Model(inputs, token_logits(config, embedding, x), name="gpt2")


def _block(config, name):
    attention = layers.SelfAttention(
        config.heads,
        config.head_width,
        use_bias=config.use_bias,
        dropout=config.dropout,
        name="self_attention",
        **block_initializers(config),
    )
    feedforward = layers.FeedForward(
        config.hidden_width,
        activation=config.activation,
        use_bias=config.use_bias,
        name="feedforward",
        **block_initializers(config),
    )
    return pre_norm_block(config, attention, feedforward, _norm, name)


def _norm(config, name):
    return layers.LayerNorm(config.norm_epsilon, center=config.use_bias, name=name)
