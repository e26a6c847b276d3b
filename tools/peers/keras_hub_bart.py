"""KerasHub's BartSeq2SeqLM, in both of its modes on TensorFlow."""

import keras_nlp
import numpy as np

from peers.keras_hub_models import backbone_options, time_steps
from peers.modes import jit_compile


def _model(shape):
    backbone = keras_nlp.models.BartBackbone(**backbone_options(shape))
    return keras_nlp.models.BartSeq2SeqLM(backbone)


def _inputs(sources, targets, valid):
    return {
        "encoder_token_ids": sources,
        "encoder_padding_mask": np.ones(sources.shape, "bool"),
        "decoder_token_ids": targets,
        "decoder_padding_mask": valid,
    }


def train(shape, inputs, targets, steps, mode):
    """Returns the seconds of each step."""
    model = _model(shape)
    values = _inputs(inputs, inputs, np.ones(inputs.shape, "bool"))
    return time_steps(model, values, targets, steps, mode, weight_decay=0.01)


def generator(shape, prompts, new_tokens, mode):
    """Returns a function that generates from the prompts as sources and returns the new ids."""
    model = _model(shape)
    model.compile(sampler="greedy", jit_compile=jit_compile(mode))
    ids = np.zeros((len(prompts), 1 + new_tokens), "int32")
    ids[:, 0] = 1
    valid = np.zeros(ids.shape, "bool")
    valid[:, 0] = True
    request = _inputs(prompts, ids, valid)
    return lambda: model.generate(request, stop_token_ids=None)["decoder_token_ids"][:, 1:]
