"""A small encoder-decoder, composed by hand."""

import keras
import numpy as np
from keras import ops

import keras_arch as ka
from tests.contracts.tiny import CONTEXT, V

WIDTH = 16
SOURCES = [[3, 1, 4, 1, 5], [9, 2], [6, 5, 3]]


def build(seed=0, scale=0.4, source_limit=None):
    """Builds one whose tokens, source and source's length matter; the head reads one tensor."""
    inputs = {
        name: keras.Input((None,), dtype=dtype, name=name)
        for name, dtype in (
            ("token_ids", "int32"),
            ("valid", "bool"),
            ("source_ids", "int32"),
            ("source_valid", "bool"),
        )
    }
    embedding = ka.layers.TokenEmbedding(V, WIDTH, name="tokens")
    source = embedding(inputs["source_ids"])
    if source_limit is not None:
        where = ka.layers.TokenPositions(name="source_positions")(inputs["source_valid"])
        source = source + ka.layers.LearnedPositions(source_limit, WIDTH, name="places")(where)
    memory = keras.layers.Dense(WIDTH, activation="tanh", name="encoder")(source)
    positions = ka.layers.TokenPositions(name="positions")(inputs["valid"])
    x = ka.layers.LearnedPositions(CONTEXT, WIDTH, name="learned")(positions)
    x = embedding(inputs["token_ids"]) + x
    block = ka.layers.PreNorm(ka.layers.SelfAttention(4, 4), ka.layers.RMSNorm(), name="block")
    x = block(x, positions, inputs["valid"])
    cross = ka.layers.PreNorm(ka.layers.CrossAttention(2, 8), ka.layers.RMSNorm(), name="cross")
    x = cross(x, memory=memory, memory_valid=inputs["source_valid"])
    # The length of the source also reaches the time side bare.
    size = ops.sum(ops.cast(inputs["source_valid"], "float32"), axis=1)[:, None, None]
    x = ka.layers.RMSNorm(name="final_norm")(x * (1.0 + 0.1 * size))
    model = keras.Model(inputs, ka.layers.CausalLMHead(V, name="head")(x))
    random = np.random.default_rng(seed)
    for weight in model.weights:
        weight.assign(random.normal(scale=scale, size=weight.shape))
    return model


def padded(sources=SOURCES, length=7):
    """Returns sources as arrays, their pads on the left and holding ids that would be noticed."""
    ids, valid = np.full((len(sources), length), 30), np.zeros((len(sources), length), "bool")
    for i, row in enumerate(sources):
        ids[i, length - len(row) :], valid[i, length - len(row) :] = row, True
    return {"source_ids": ids, "source_valid": valid}
