"""KerasHub's BertTextClassifier, in both of its modes on TensorFlow."""

import keras
import keras_nlp
import numpy as np

from peers.bert_shapes import CLASSES
from peers.fit_steps import step_seconds
from peers.modes import jit_compile


def _model(shape):
    backbone = keras_nlp.models.BertBackbone(
        vocabulary_size=shape.vocabulary_size,
        num_layers=shape.layers,
        num_heads=shape.heads,
        hidden_dim=shape.width,
        intermediate_dim=4 * shape.width,
        max_sequence_length=shape.context_length,
        dropout=0.0,
    )
    return keras_nlp.models.BertTextClassifier(backbone, CLASSES, dropout=0.0)


def _inputs(ids):
    mask = np.ones(ids.shape, "bool")
    return {"token_ids": ids, "padding_mask": mask, "segment_ids": np.zeros_like(ids)}


def train(shape, inputs, targets, steps, mode):
    """Returns the seconds of each step."""
    model = _model(shape)
    model.compile(
        keras.optimizers.AdamW(1e-3, weight_decay=0.01),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        weighted_metrics=[],
        jit_compile=jit_compile(mode),
    )
    return step_seconds(model, _inputs(inputs), targets[:, 0] % CLASSES, steps)


def reader(shape, ids, mode):
    """Returns a function that reads the ids and returns logits."""
    model = _model(shape)
    model.compile(jit_compile=jit_compile(mode))
    return lambda: model.predict_on_batch(_inputs(ids))
