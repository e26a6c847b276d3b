"""What the encoders (BERT and after) share: config fields, embedding, blocks, outputs."""

import dataclasses

import keras

from keras_arch import layers
from keras_arch.checks import check_positive
from keras_arch.models.bart import SUBLAYERS as BART_SUBLAYERS
from keras_arch.models.decoder_only import StackConfig, normal, token_embedding
from keras_arch.models.encoder_decoder import encoder_block

#: Names of the layers that make a token's first vector, of which models may share some.
TOKENS, TYPES, POSITIONS = "tokens", "token_types", "position_table"


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderConfig(StackConfig):
    """The fields that all encoders share; fields as in `StackConfig`, and:

    Attributes:
        hidden_width: Width of the feed-forward networks; default `4 * width`.
        activation: Of the feed-forward networks.
    """

    norm_epsilon: float = 1e-12
    hidden_width: int | None = None
    activation: str = "gelu"

    def __post_init__(self):
        super().__post_init__()
        if self.hidden_width is None:
            object.__setattr__(self, "hidden_width", 4 * self.width)
        check_positive(hidden_width=self.hidden_width)


def type_inputs():
    """Returns the symbolic input `type_ids` int32 `[B, T]`, the text of a pair, by name."""
    return {"type_ids": keras.Input((None,), dtype="int32", name="type_ids")}


def embedding_layers(config, types=0, offset=0, width=None):
    """Returns the tables whose vectors are summed for each token, by name.

    Args:
        config: An `EncoderConfig`.
        types: Rows of the table of types; 0: there is none.
        offset: Rows of the position table before that of position 0.
        width: Of the vectors; default the stream's.
    """
    width = config.width if width is None else width
    tables = {TOKENS: token_embedding(config, width)}
    if types:
        tables[TYPES] = layers.TokenEmbedding(
            types, width, embeddings_initializer=normal(config), name=TYPES
        )
    tables[POSITIONS] = layers.LearnedPositions(
        config.context_length,
        width,
        embeddings_initializer=normal(config),
        offset=offset,
        name=POSITIONS,
    )
    return tables


def embedded(config, tables, token_ids, positions, type_ids=None):
    """Wires the sum of a token's vectors, its norm and dropout.

    Args:
        config: An `EncoderConfig`.
        tables: From `embedding_layers`.
        token_ids: Symbolic int `[B, T]`.
        positions: Symbolic int `[B, T]`.
        type_ids: Symbolic int `[B, T]`, where there is a table of types.
    """
    ids = {TOKENS: token_ids, TYPES: type_ids, POSITIONS: positions}
    x = [table(ids[name]) for name, table in tables.items()]
    x = keras.layers.Add(name="embedded")(x)
    x = layers.LayerNorm(config.norm_epsilon, name="embedding_norm")(x)
    return layers.Dropout(config.dropout, name="embedding_dropout")(x)


def encoder_stack(config, x, positions, valid):
    """Wires the post-norm blocks."""
    for i in range(config.layers):
        x = encoder_block(config, SUBLAYERS, f"block_{i}")(x, positions, valid)
    return x


def pooled(config, x, valid):
    """Wires BERT's pooler: the first token's vector through a matrix and tanh, `[B, D]`."""
    x = layers.FirstToken(name="first_token")(x, valid)
    pooler = keras.layers.Dense(
        config.width, "tanh", kernel_initializer=normal(config), name="pooler"
    )
    return pooler(x)


def _feedforward(config):
    return layers.FeedForward(
        config.hidden_width,
        activation=config.activation,
        kernel_initializer=normal(config),
        name="feedforward",
    )


#: BART's, but without dropout inside the feed-forward networks.
SUBLAYERS = BART_SUBLAYERS._replace(feedforward=_feedforward)
