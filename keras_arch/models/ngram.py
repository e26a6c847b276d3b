"""The fixed-window neural language model (Bengio et al. 2003)."""

import dataclasses

import keras

from keras_arch.checks import check_positive, check_positive_number, check_rate
from keras_arch.layers import CausalLMHead, Dropout, FixedWindow, TokenEmbedding
from keras_arch.models.decoder_only import normal, token_inputs


@dataclasses.dataclass(frozen=True, kw_only=True)
class NGramConfig:
    """The shape of a neural n-gram model.

    Attributes:
        vocabulary_size: V.
        order: n: a token is predicted from the n - 1 before it. 1 sees nothing (unigram), 2 is a
            bigram model, 3 a trigram model. Trained with its input as the target, order 2 is the
            identity model that squeezes a token through the bottleneck and decodes it.
        width: Of a token's vector.
        bottleneck: Width that the n - 1 vectors together are compressed to.
        activation: Of the bottleneck.
        dropout: Rate after the bottleneck.
        initializer_range: Standard deviation of the initial matrices.
    """

    vocabulary_size: int
    order: int
    width: int
    bottleneck: int
    activation: str = "tanh"
    dropout: float = 0.0
    initializer_range: float = 0.08

    def __post_init__(self):
        for field in ("vocabulary_size", "order", "width", "bottleneck"):
            check_positive(**{field: getattr(self, field)})
        check_rate(dropout=self.dropout)
        check_positive_number(initializer_range=self.initializer_range)


def ngram(config):
    """Builds a fixed-window model: the last n - 1 tokens embedded, joined, compressed, decoded.

    Rows may be of any length; a row's first tokens are predicted from zeros in place of the tokens
    that are not there.

    Args:
        config: An `NGramConfig`.

    Returns:
        A functional model from `token_ids` int32 `[B, T]` and `valid` bool `[B, T]` to logits
        `[B, T, V]`.
    """
    inputs = token_inputs()
    x = TokenEmbedding(
        config.vocabulary_size, config.width, embeddings_initializer=normal(config), name="tokens"
    )(inputs["token_ids"])
    x = FixedWindow(config.order - 1, name="window")(x, inputs["valid"])
    x = keras.layers.Dense(
        config.bottleneck, config.activation, kernel_initializer=normal(config), name="bottleneck"
    )(x)
    x = Dropout(config.dropout, name="dropout")(x)
    head = CausalLMHead(
        config.vocabulary_size, use_bias=True, kernel_initializer=normal(config), name="head"
    )
    return keras.Model(inputs, head(x), name="ngram")
