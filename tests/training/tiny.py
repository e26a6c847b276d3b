"""A language model small enough to train in a test, and data for it."""

import keras
import numpy as np
import tensorflow as tf
from keras import ops

import keras_arch as ka

VOCABULARY = 11
LENGTH = 6


def model(dropout=0.0):
    """A functional model with an embedding, dropout, a norm, a bias; logits [B, T, V]."""
    token_ids = keras.Input((None,), dtype="int32", name="token_ids")
    valid = keras.Input((None,), dtype="bool", name="valid")
    x = ka.layers.TokenEmbedding(VOCABULARY, 8)(token_ids)
    x = x * ops.cast(valid, x.dtype)[..., None]
    x = ka.layers.Dropout(dropout)(x)
    x = keras.layers.LayerNormalization()(x)
    logits = keras.layers.Dense(VOCABULARY, bias_initializer="ones")(x)
    return keras.Model({"token_ids": token_ids, "valid": valid}, logits)


def batch(number, lengths=(6, 3, 2, 5)):
    """Inputs, targets and weights [4, 6] with rows of these many real tokens."""
    ids = np.random.default_rng(number).integers(0, VOCABULARY, (len(lengths), LENGTH + 1))
    valid = np.arange(LENGTH + 1) <= np.array(lengths)[:, None]
    return ka.objectives.next_token(ids.astype("int32"), valid)


def dataset(start_step=0, rows=4):
    """Endless batches; batch i is drawn from the seed i."""

    def make(number):
        ids = tf.random.stateless_uniform([rows, LENGTH + 1], [7, number], 0, VOCABULARY, tf.int32)
        lengths = tf.random.stateless_uniform([rows, 1], [8, number], 1, LENGTH + 1, tf.int32)
        return ka.objectives.next_token(ids, tf.range(LENGTH + 1)[None] <= lengths)

    options = tf.data.Options()
    options.autotune.enabled = False
    numbers = tf.data.Dataset.range(start_step, 1 << 30)
    return numbers.map(lambda n: make(tf.cast(n, tf.int32))).with_options(options)


def variables(of):
    """Numpy copies of the variables of a model or an optimizer."""
    return [np.array(keras.ops.convert_to_numpy(v.value)) for v in of.variables]
