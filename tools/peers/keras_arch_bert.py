"""This project's BERT with a classifier."""

import numpy as np

import keras_arch as ka
from peers.bert_shapes import CLASSES
from peers.keras_arch_steps import time_steps


def _model(shape):
    return ka.models.sequence_classification(
        ka.models.bert(ka.models.BERTConfig(**shape._asdict())), CLASSES
    )


def _inputs(ids):
    return {"token_ids": ids, "valid": np.ones(ids.shape, "bool"), "type_ids": np.zeros_like(ids)}


def train(shape, inputs, targets, steps, mode):
    """Returns the seconds of each step."""
    model = _model(shape)
    return time_steps(model, _inputs(inputs), targets[:, 0] % CLASSES, steps, weight_decay=0.01)


def reader(shape, ids, mode):
    """Returns a function that reads the ids and returns logits."""
    model = _model(shape)
    model.compile(jit_compile=ka.training.strategy("one").jit_compile())
    return lambda: model.predict_on_batch(_inputs(ids))
