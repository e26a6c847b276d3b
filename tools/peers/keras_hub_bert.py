"""KerasHub's BertTextClassifier, in both of its modes on TensorFlow."""

import keras_nlp
import numpy as np

from peers.bert_shapes import CLASSES
from peers.keras_hub_models import backbone_options, time_steps
from peers.modes import jit_compile


def _model(shape):
    backbone = keras_nlp.models.BertBackbone(**backbone_options(shape))
    return keras_nlp.models.BertTextClassifier(backbone, CLASSES, dropout=0.0)


def _inputs(ids):
    mask = np.ones(ids.shape, "bool")
    return {"token_ids": ids, "padding_mask": mask, "segment_ids": np.zeros_like(ids)}


def train(shape, inputs, targets, steps, mode):
    """Returns the seconds of each step."""
    model = _model(shape)
    return time_steps(
        model, _inputs(inputs), targets[:, 0] % CLASSES, steps, mode, weight_decay=0.01
    )


def reader(shape, ids, mode):
    """Returns a function that reads the ids and returns logits."""
    model = _model(shape)
    model.compile(jit_compile=jit_compile(mode))
    return lambda: model.predict_on_batch(_inputs(ids))
