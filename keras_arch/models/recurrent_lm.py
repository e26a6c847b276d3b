"""Recurrent language models: Elman (Mikolov et al. 2010), LSTM (Zaremba et al. 2014) and GRU."""

import dataclasses

import keras

from keras_arch import layers
from keras_arch.checks import check_positive, check_positive_number, check_rate
from keras_arch.models.decoder_only import token_embedding, token_inputs, token_logits


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecurrentLMConfig:
    """The shape of a recurrent language model.

    Attributes:
        vocabulary_size: V.
        width: D, of tokens' vectors and of each layer's state.
        layers: Number of recurrent layers, one on the other.
        residual: Whether each layer's output is added to its input (Kim et al. 2017, section 2).
        tied: Whether the head shares the embedding's table.
        dropout: Rate after the embedding and after each layer; the same units at all steps of a row
            (Gal & Ghahramani 2016, section 4).
        recurrent_dropout: Rate for the state where it is multiplied, the same units at all steps.
        normalise: Whether the layers have layer norm inside (Ba et al. 2016).
        initializer_range: Standard deviation of the initial table and of the head's matrix.
    """

    vocabulary_size: int
    width: int
    layers: int
    residual: bool = False
    tied: bool = True
    dropout: float = 0.0
    recurrent_dropout: float = 0.0
    normalise: bool = False
    initializer_range: float = 0.08

    def __post_init__(self):
        for field in ("vocabulary_size", "width", "layers"):
            check_positive(**{field: getattr(self, field)})
        check_rate(dropout=self.dropout)
        check_rate(recurrent_dropout=self.recurrent_dropout)
        check_positive_number(initializer_range=self.initializer_range)


class RNNLMConfig(RecurrentLMConfig):
    """The shape of an Elman network; fields as in `RecurrentLMConfig`."""


class LSTMLMConfig(RecurrentLMConfig):
    """The shape of an LSTM language model; fields as in `RecurrentLMConfig`."""


class GRULMConfig(RecurrentLMConfig):
    """The shape of a GRU language model; fields as in `RecurrentLMConfig`."""


def rnn_lm(config):
    """Builds the language model of an `RNNLMConfig`; returns what `lstm_lm` does."""
    return _recurrent_lm(config, layers.ElmanRNN, "rnn_lm")


def lstm_lm(config):
    """Builds an LSTM language model.

    Args:
        config: An `LSTMLMConfig`.

    Returns:
        A functional model from `token_ids` int32 `[B, T]` and `valid` bool `[B, T]` to logits
        `[B, T, V]`.
    """
    return _recurrent_lm(config, layers.LSTM, "lstm_lm")


def gru_lm(config):
    """Builds the language model of a `GRULMConfig`; returns what `lstm_lm` does."""
    return _recurrent_lm(config, layers.GRU, "gru_lm")


def _recurrent_lm(config, recurrent, name):
    inputs = token_inputs()
    embedding = token_embedding(config)
    x = variational_dropout(config.dropout, "embedding_dropout")(embedding(inputs["token_ids"]))
    for i in range(config.layers):
        y = recurrent(
            config.width,
            recurrent_dropout=config.recurrent_dropout,
            normalise=config.normalise,
            name=f"recurrent_{i}",
        )(x, inputs["valid"])
        y = variational_dropout(config.dropout, f"dropout_{i}")(y)
        x = keras.layers.Add(name=f"residual_{i}")([x, y]) if config.residual else y
    return keras.Model(inputs, token_logits(config, embedding, x), name=name)


def variational_dropout(rate, name):
    """Returns a layer that drops the same units of `[B, T, D]` at all steps of a row."""
    return layers.Dropout(rate, noise_shape=(None, 1, None), name=name)
