"""One unit vector for a text, and how alike two texts are by them."""

import keras
from keras import ops

from keras_arch import layers
from keras_arch.models.encoder_heads import headed, hidden_of, inputs_of


def sentence_embedding(encoder, pooling=None):
    """Makes an encoder give one vector of length 1 for a row.

    Args:
        encoder: As in `sequence_classification`.
        pooling: `MeanTokens()` (default), `FirstToken()`, `MaxTokens()`, or any layer from `hidden`
            and `valid` to `[B, D]`.

    Returns:
        A functional model from the encoder's inputs to unit vectors `[B, D]`.

    Source: Reimers & Gurevych 2019, section 3.
    """
    pooling = layers.MeanTokens(name="mean_tokens") if pooling is None else pooling
    x = pooling(hidden_of(encoder), inputs_of(encoder)["valid"])
    return headed(encoder, keras.layers.UnitNormalization(name="unit")(x), "sentence_embedding")


def pair_similarity(embedding):
    """Compares two texts by the cosine of their vectors.

    Args:
        embedding: From `sentence_embedding`; it reads both texts.

    Returns:
        A functional model to cosines `[B]` from the inputs of `embedding` twice, named `first_...`
        and `second_...`: `first_token_ids`, `first_valid`, `second_token_ids`, ...

    Source: Reimers & Gurevych 2019, figure 2.
    """
    inputs, vectors = {}, []
    for which in ("first", "second"):
        own = {
            name: keras.Input(x.shape[1:], dtype=x.dtype, name=f"{which}_{name}")
            for name, x in inputs_of(embedding).items()
        }
        vectors.append(embedding(own))
        inputs |= {x.name: x for x in own.values()}
    products = keras.layers.Multiply(name="products")(vectors)
    return keras.Model(inputs, ops.sum(products, axis=-1), name=f"{embedding.name}_pairs")
