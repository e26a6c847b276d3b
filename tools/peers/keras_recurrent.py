"""The same models of Keras's own layers, as its users write them."""

import keras
from keras import ops

from peers.fit_steps import step_seconds
from peers.modes import jit_compile
from peers.recurrent_shapes import LSTMShape


class Decoder(keras.layers.Layer):
    """Bahdanau's decoder, its keys projected once and its loop unrolled."""

    def __init__(self, width):
        super().__init__()
        self.width = width
        self.keys = keras.layers.Dense(width, use_bias=False)
        self.query = keras.layers.Dense(width, use_bias=False)
        self.score = keras.layers.Dense(1, use_bias=False)
        self.cell = keras.layers.LSTMCell(width)
        self.output_layer = keras.layers.Dense(width, activation="tanh")

    def build(self, x_shape, memory_shape):
        self.keys.build(memory_shape)
        self.query.build((None, self.width))
        self.score.build((None, None, self.width))
        self.cell.build((None, x_shape[-1] + memory_shape[-1]))
        self.output_layer.build((None, None, self.width + memory_shape[-1]))

    def call(self, x, memory):
        keys = self.keys(memory)
        h = c = ops.zeros_like(keys[:, 0])
        outputs = []
        for step in range(x.shape[1]):
            scores = self.score(ops.tanh(keys + self.query(h)[:, None]))
            weights = ops.softmax(scores, axis=1)
            context = ops.sum(weights * memory, axis=1)
            _, (h, c) = self.cell(ops.concatenate([x[:, step], context], axis=-1), [h, c])
            outputs.append(ops.concatenate([context, h], axis=-1))
        return self.output_layer(ops.stack(outputs, axis=1))


def _model(shape, time):
    token_ids = keras.Input((time,), dtype="int32", name="token_ids")
    embedding = keras.layers.Embedding(shape.vocabulary_size, shape.width)
    head = keras.layers.Dense(shape.vocabulary_size)
    x = embedding(token_ids)
    if isinstance(shape, LSTMShape):
        for _ in range(shape.layers):
            x = keras.layers.LSTM(shape.width, return_sequences=True)(x)
        return keras.Model({"token_ids": token_ids}, head(x))
    source_ids = keras.Input((time,), dtype="int32", name="source_ids")
    encoder = keras.layers.Bidirectional(keras.layers.LSTM(shape.width, return_sequences=True))
    x = Decoder(shape.width)(x, encoder(embedding(source_ids)))
    return keras.Model({"token_ids": token_ids, "source_ids": source_ids}, head(x))


def train(shape, inputs, targets, steps, mode):
    """Returns the seconds of each step."""
    model = _model(shape, inputs.shape[1])
    model.compile(
        keras.optimizers.AdamW(1e-3),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=jit_compile(mode),
    )
    values = {"token_ids": inputs}
    if not isinstance(shape, LSTMShape):
        values["source_ids"] = inputs
    return step_seconds(model, values, targets, steps)
