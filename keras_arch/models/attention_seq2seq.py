"""Sequence to sequence with attention (Bahdanau et al. 2015; Luong et al. 2015)."""

import dataclasses

import keras

from keras_arch import layers
from keras_arch.checks import check_positive
from keras_arch.models.decoder_only import token_embedding, token_inputs, token_logits
from keras_arch.models.recurrent_lm import variational_dropout
from keras_arch.models.seq2seq import (
    BRIDGES,
    Seq2SeqConfig,
    bridge,
    check_one_of,
    encode,
    make_cell,
    source_inputs,
)

ATTENTIONS = ("additive", "dot", "general", "local", "location")
ORDERS = ("bahdanau", "luong")


@dataclasses.dataclass(frozen=True, kw_only=True)
class AttentionSeq2SeqConfig(Seq2SeqConfig):
    """The shape of a recurrent encoder and a decoder that attends to all of its outputs.

    Fields as in `Seq2SeqConfig`, where `bridge` may be "zero" as well, and:

    Attributes:
        attention: "additive" (Bahdanau et al. 2015); "dot", "general" or "local" (Luong et al.
            2015; "local" predicts its place and scores as "general"); or "location".
        order: "bahdanau": attention from the state before the step; or "luong": from that after it.
        attention_width: Of the layers inside attention "additive" and "local"; default
            `decoder_width`.
        normalised: Whether additive attention is normalised, with a bias.
        coverage: Whether additive attention reads its coverage.
        window: Of attention "local": tokens on either side of the place.
        max_source_length: Of attention "location": longest source, in tokens.
        input_feeding: Whether the decoder's output before is read beside its input. In Bahdanau's
            order the context is, always.
    """

    attention: str = "additive"
    order: str = "bahdanau"
    attention_width: int | None = None
    normalised: bool = False
    coverage: bool = False
    window: int | None = None
    max_source_length: int | None = None
    input_feeding: bool = True

    bridges = BRIDGES

    def __post_init__(self):
        super().__post_init__()
        check_one_of(attention=(self.attention, ATTENTIONS), order=(self.order, ORDERS))
        if self.attention_width is None:
            object.__setattr__(self, "attention_width", self.decoder_width)
        check_positive(attention_width=self.attention_width)
        self._check_goes_with("normalised", "additive", False)
        self._check_goes_with("coverage", "additive", False)
        for field, attention in (("window", "local"), ("max_source_length", "location")):
            self._check_goes_with(field, attention, None)
            if self.attention == attention:
                check_positive(**{field: getattr(self, field)})
        if self.attention == "dot" and self.memory_width != self.decoder_width:
            raise ValueError(
                "attention='dot' needs decoder_width equal to the encoder's, of both directions "
                f"together; received decoder_width={self.decoder_width}, "
                f"encoder_width={self.encoder_width}, bidirectional={self.bidirectional}. "
                "Use attention='general'."
            )
        if self.order == "bahdanau" and not self.input_feeding:
            raise ValueError("input_feeding=False needs order='luong'; received 'bahdanau'.")

    def _check_goes_with(self, field, attention, unused):
        value = getattr(self, field)
        if value != unused and self.attention != attention:
            raise ValueError(
                f"{field} goes with attention={attention!r}; received {field}={value!r}, "
                f"attention={self.attention!r}."
            )


def attention_seq2seq(config):
    """Builds an encoder and a decoder that attends to it.

    Args:
        config: An `AttentionSeq2SeqConfig`.

    Returns:
        A functional model with the inputs and the output of `seq2seq`. Its layer "decoder" tells
        the attention weights.
    """
    inputs = source_inputs() | token_inputs()
    embedding = token_embedding(config)
    memory, states = encode(config, inputs, embedding)
    context = {"memory": memory, "memory_valid": inputs["source_valid"]}
    if config.bridge != "zero":
        context["initial_state"] = bridge(config, states)
    x = variational_dropout(config.dropout, "embedding_dropout")(embedding(inputs["token_ids"]))
    x = _decoder(config)(x, inputs["valid"], **context)
    x = variational_dropout(config.dropout, "dropout")(x)
    return keras.Model(inputs, token_logits(config, embedding, x), name="attention_seq2seq")


def _decoder(config):
    cells = [
        make_cell(config, config.decoder_width, f"cell_{i}") for i in range(config.decoder_layers)
    ]
    if config.order == "bahdanau":
        return layers.BahdanauDecoder(_attention(config), cells, name="decoder")
    return layers.LuongDecoder(
        _attention(config), cells, input_feeding=config.input_feeding, name="decoder"
    )


def _attention(config):
    if config.attention == "additive":
        return layers.AdditiveAttention(
            config.attention_width,
            normalised=config.normalised,
            use_bias=config.normalised,
            coverage=config.coverage,
            name="attention",
        )
    if config.attention == "local":
        return layers.LocalAttention(
            config.window, config.attention_width, general=True, name="attention"
        )
    if config.attention == "location":
        return layers.LocationAttention(config.max_source_length, name="attention")
    return layers.MultiplicativeAttention(config.attention == "general", name="attention")
