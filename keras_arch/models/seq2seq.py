"""Sequence to sequence with recurrent layers (Sutskever et al. 2014; Cho et al. 2014)."""

import dataclasses

import keras

from keras_arch import layers
from keras_arch.checks import check_positive, check_positive_number, check_rate
from keras_arch.layers import TokenEmbedding
from keras_arch.models.decoder_only import normal, token_embedding, token_inputs, token_logits
from keras_arch.models.recurrent_lm import variational_dropout

CELLS = {"lstm": layers.LSTM, "gru": layers.GRU}
BRIDGES = ("zero", "copy", "dense")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Seq2SeqConfig:
    """The shape of a recurrent encoder and decoder.

    Attributes:
        vocabulary_size: V, of the target.
        width: Of tokens' vectors.
        encoder_width: Of each encoder layer's state, in each direction.
        decoder_width: Of each decoder layer's state.
        encoder_layers: Number of encoder layers.
        decoder_layers: Number of decoder layers.
        cell: "lstm" or "gru".
        bidirectional: Whether each encoder layer reads in both directions.
        bridge: What the decoder starts from. "zero": zeros; "copy": the last states of the encoder,
            layer by layer, both directions joined; "dense": maps of the last states of its last
            layer (Bahdanau et al. 2015, appendix A.2.2).
        source_vocabulary_size: Of a table of the source's own; None: source and target share one.
        tied: Whether the head shares the target's table; needs `decoder_width == width`.
        dropout: Rate after embeddings and layers, the same units at all steps of a row.
        recurrent_dropout: Rate inside the layers; see `Recurrent`.
        initializer_range: Standard deviation of the initial tables and of the head's matrix.
    """

    vocabulary_size: int
    width: int
    encoder_width: int
    decoder_width: int
    encoder_layers: int = 1
    decoder_layers: int = 1
    cell: str = "lstm"
    bidirectional: bool = True
    bridge: str = "dense"
    source_vocabulary_size: int | None = None
    tied: bool = False
    dropout: float = 0.0
    recurrent_dropout: float = 0.0
    initializer_range: float = 0.08

    #: What the decoder may start from.
    bridges = ("copy", "dense")

    def __post_init__(self):
        for field in ("vocabulary_size", "width", "encoder_width", "decoder_width"):
            check_positive(**{field: getattr(self, field)})
        check_positive(encoder_layers=self.encoder_layers, decoder_layers=self.decoder_layers)
        if self.source_vocabulary_size is not None:
            check_positive(source_vocabulary_size=self.source_vocabulary_size)
        check_rate(dropout=self.dropout)
        check_rate(recurrent_dropout=self.recurrent_dropout)
        check_one_of(cell=(self.cell, tuple(CELLS)), bridge=(self.bridge, self.bridges))
        check_positive_number(initializer_range=self.initializer_range)
        self._check_widths()

    def _check_widths(self):
        if self.tied and self.decoder_width != self.width:
            raise ValueError(
                "tied needs decoder_width equal to width; received "
                f"decoder_width={self.decoder_width}, width={self.width}."
            )
        if self.bridge != "copy":
            return
        if self.encoder_layers != self.decoder_layers:
            raise ValueError(
                "bridge='copy' needs as many encoder as decoder layers; received "
                f"encoder_layers={self.encoder_layers}, decoder_layers={self.decoder_layers}. "
                "Use bridge='dense'."
            )
        if self.memory_width != self.decoder_width:
            raise ValueError(
                "bridge='copy' needs decoder_width equal to the encoder's, of both directions "
                f"together; received decoder_width={self.decoder_width}, "
                f"encoder_width={self.encoder_width}, bidirectional={self.bidirectional}. "
                "Use bridge='dense'."
            )

    @property
    def memory_width(self):
        """M, of the encoder's output."""
        return self.encoder_width * (2 if self.bidirectional else 1)


def check_one_of(**choices):
    """Raises ValueError naming the first argument whose value is not one of its choices."""
    for name, (value, allowed) in choices.items():
        if value not in allowed:
            raise ValueError(f"{name} must be one of {allowed}; received {name}={value!r}.")


def seq2seq(config):
    """Builds an encoder and a decoder that starts from the encoder's last state.

    The decoder's input is the target shifted by one (see `keras_arch.objectives.next_token`): it
    begins with the start token and ends before the stop token.

    Args:
        config: A `Seq2SeqConfig`.

    Returns:
        A functional model from `source_ids` int32 `[B, S]`, `source_valid` bool `[B, S]`,
        `token_ids` int32 `[B, T]` and `valid` bool `[B, T]` to logits `[B, T, V]`.
    """
    inputs = source_inputs() | token_inputs()
    embedding = token_embedding(config)
    _, states = encode(config, inputs, embedding)
    states = bridge(config, states)
    x = variational_dropout(config.dropout, "embedding_dropout")(embedding(inputs["token_ids"]))
    size = len(states) // config.decoder_layers
    for i in range(config.decoder_layers):
        first = states[i * size : (i + 1) * size]
        x = make_cell(config, config.decoder_width, f"decoder_{i}")(
            x, inputs["valid"], initial_state=first
        )
        x = variational_dropout(config.dropout, f"dropout_{i}")(x)
    return keras.Model(inputs, token_logits(config, embedding, x), name="seq2seq")


def source_inputs():
    """Returns the symbolic inputs of an encoder, `source_ids` and `source_valid`, by name."""
    return {
        "source_ids": keras.Input((None,), dtype="int32", name="source_ids"),
        "source_valid": keras.Input((None,), dtype="bool", name="source_valid"),
    }


def source_embedding(config, embedding):
    """Returns the layer that embeds the source: one with a table of its own, or the target's."""
    if config.source_vocabulary_size is None:
        return embedding
    return TokenEmbedding(
        config.source_vocabulary_size,
        config.width,
        scale=embedding.scale,
        embeddings_initializer=normal(config),
        name="source_tokens",
    )


def make_cell(config, width, name, **options):
    """Returns a recurrent layer of the config's kind."""
    return CELLS[config.cell](
        width, recurrent_dropout=config.recurrent_dropout, name=name, **options
    )


def encode(config, inputs, embedding):
    """Wires the encoder.

    Args:
        config: A `Seq2SeqConfig`.
        inputs: With those of `source_inputs`.
        embedding: The target's, used where the source has no own.

    Returns:
        The memory, symbolic `[B, S, M]`, and for each layer the list of its last states `[B, M]`.
    """
    embedding = source_embedding(config, embedding)
    x = variational_dropout(config.dropout, "source_dropout")(embedding(inputs["source_ids"]))
    states = []
    for i in range(config.encoder_layers):
        directions = [("forward", False), ("backward", True)][: 1 + config.bidirectional]
        read = [
            make_cell(
                config,
                config.encoder_width,
                f"encoder_{direction}_{i}",
                reverse=reverse,
                return_state=True,
            )(x, inputs["source_valid"])
            for direction, reverse in directions
        ]
        x, *last = (_joined(parts) for parts in zip(*read, strict=True))
        x = variational_dropout(config.dropout, f"encoder_dropout_{i}")(x)
        states.append(last)
    return x, states


def bridge(config, states):
    """Wires what the decoder starts from.

    Args:
        config: A `Seq2SeqConfig`.
        states: From `encode`.

    Returns:
        The states of the decoder's layers, one after another, symbolic `[B, decoder_width]` each;
        None for zeros.
    """
    if config.bridge == "zero":
        return None
    if config.bridge == "copy":
        return [state for layer in states for state in layer]
    # h of every cell lies within [-1, 1]; c does not.
    kinds = zip(CELLS[config.cell].state_names, states[-1], strict=True)
    kinds = [(name, "tanh" if name == "h" else None, state) for name, state in kinds]
    return [
        keras.layers.Dense(config.decoder_width, activation, name=f"bridge_{name}_{i}")(state)
        for i in range(config.decoder_layers)
        for name, activation, state in kinds
    ]


def _joined(parts):
    return keras.layers.Concatenate()(list(parts)) if len(parts) > 1 else parts[0]
