"""LLaMA (Touvron et al. 2023): rotary positions, RMS pre-norm, gated feed-forward.

Mistral, Qwen2 and Qwen3 are LLaMAs with a window, with some biases, with norms of queries and keys.
"""

import dataclasses

import keras

from keras_arch import layers
from keras_arch.checks import check_positive
from keras_arch.layers.rotary_scaling import RotaryScaling
from keras_arch.models.decoder_only import (
    DecoderConfig,
    block_initializers,
    decoder_stack,
    pre_norm_block,
    token_embedding,
    token_inputs,
    token_logits,
    token_positions,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LlamaConfig(DecoderConfig):
    """The shape of a LLaMA; fields as in `DecoderConfig`, and:

    Attributes:
        hidden_width: Width of the gated feed-forward network.
        key_value_heads: K, divides `heads`; default `heads`.
        rotary_base: Base of the rotary frequencies.
        rotary_layout: "half_split" or "interleaved".
        rotary_scaling: Optional `LinearScaling`, `DynamicNTKScaling`, `YarnScaling` or
            `Llama3Scaling`.
        window: Optional sliding window of attention, in tokens (Mistral).
        activation: Of the gate.
        head_width: H; default `width / heads`.
        use_bias: Whether queries, keys and values have biases (Qwen2).
        use_output_bias: Whether attention's output has a bias.
        use_feedforward_bias: Whether the feed-forward's matrices have biases.
        query_key_norm: Whether queries and keys have an RMS norm in each head (Qwen3).
    """

    hidden_width: int
    norm_epsilon: float = 1e-6
    key_value_heads: int | None = None
    rotary_base: float = 10000.0
    rotary_layout: str = "half_split"
    rotary_scaling: RotaryScaling | None = None
    window: int | None = None
    activation: str = "silu"
    tied: bool = False
    head_width: int | None = None
    use_bias: bool = False
    use_output_bias: bool = False
    use_feedforward_bias: bool = False
    query_key_norm: bool = False

    def __post_init__(self):
        super().__post_init__()
        check_positive(hidden_width=self.hidden_width)
        if self.key_value_heads is None:
            object.__setattr__(self, "key_value_heads", self.heads)
        check_positive(key_value_heads=self.key_value_heads)
        if self.heads % self.key_value_heads:
            raise ValueError(
                "key_value_heads must divide heads; received "
                f"heads={self.heads}, key_value_heads={self.key_value_heads}."
            )
        if self.window is not None:
            check_positive(window=self.window)
        if self.head_width is None:
            object.__setattr__(self, "head_width", self.width // self.heads)
        check_positive(head_width=self.head_width)
        if self.head_width % 2:
            raise ValueError(
                "head_width (width / heads) must be even for rotary positions; received "
                f"width={self.width}, heads={self.heads}, head_width={self.head_width}."
            )


def _published(width, layers, heads, hidden_width):
    return LlamaConfig(
        vocabulary_size=32000,
        width=width,
        layers=layers,
        heads=heads,
        hidden_width=hidden_width,
        context_length=2048,
    )


#: The published sizes: 6,738,415,616, 13,015,864,320, 32,528,943,616 and 65,285,660,672 parameters.
SIZES = {
    "7b": _published(4096, 32, 32, 11008),
    "13b": _published(5120, 40, 40, 13824),
    "33b": _published(6656, 60, 52, 17920),
    "65b": _published(8192, 80, 64, 22016),
}


def llama(config, packed=False):
    """Builds a LLaMA.

    Args:
        config: A `LlamaConfig`.
        packed: Whether rows hold several documents: adds the input `segment_ids`; positions then
            restart with each document and attention stays inside it.

    Returns:
        A functional model from `token_ids` int32 `[B, T]` and `valid` bool `[B, T]` to logits
        `[B, T, V]`.
    """
    inputs = token_inputs(packed)
    embedding = token_embedding(config)
    positions = token_positions(inputs, config.context_length)
    x = embedding(inputs["token_ids"])
    x = decoder_stack(config, x, positions, inputs, _block, _norm)
    return keras.Model(inputs, token_logits(config, embedding, x), name="llama")


def _block(config, name):
    attention = layers.SelfAttention(
        config.heads,
        config.head_width,
        key_value_heads=config.key_value_heads,
        use_bias=config.use_bias,
        use_output_bias=config.use_output_bias,
        rotary=layers.Rotary(
            config.rotary_base, config.rotary_layout, config.rotary_scaling, name="rotary"
        ),
        query_norm=_head_norm(config, "query_norm"),
        key_norm=_head_norm(config, "key_norm"),
        window=config.window,
        dropout=config.dropout,
        name="self_attention",
        **block_initializers(config),
    )
    feedforward = layers.GatedFeedForward(
        config.hidden_width,
        activation=config.activation,
        use_bias=config.use_feedforward_bias,
        name="feedforward",
        **block_initializers(config),
    )
    return pre_norm_block(config, attention, feedforward, _norm, name)


def _head_norm(config, name):
    return _norm(config, name) if config.query_key_norm else None


def _norm(config, name):
    return layers.RMSNorm(config.norm_epsilon, name=name)
