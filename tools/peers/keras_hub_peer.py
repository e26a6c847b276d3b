"""KerasHub's GPT2CausalLM, in both of its modes on TensorFlow."""

import keras_nlp
import numpy as np

from peers.keras_hub_models import backbone_options, time_steps
from peers.modes import jit_compile


def _model(shape):
    backbone = keras_nlp.models.GPT2Backbone(**backbone_options(shape))
    return keras_nlp.models.GPT2CausalLM(backbone, preprocessor=None)


def train(shape, inputs, targets, steps, mode):
    """Returns the seconds of each step."""
    model = _model(shape)
    mask = np.ones(inputs.shape, "bool")
    return time_steps(
        model,
        {"token_ids": inputs, "padding_mask": mask},
        targets,
        steps,
        mode,
        weight_decay=0.1,
        beta_2=0.99,
        global_clipnorm=1.0,
    )


def generator(shape, prompts, new_tokens, mode):
    """Returns a function that generates after the prompts and returns the new ids."""
    model = _model(shape)
    model.compile(sampler="greedy", jit_compile=jit_compile(mode))
    length = prompts.shape[1]
    ids = np.pad(prompts, ((0, 0), (0, new_tokens)))
    mask = np.broadcast_to(np.arange(ids.shape[1]) < length, ids.shape)
    request = {"token_ids": ids, "padding_mask": mask}
    return lambda: model.generate(request, stop_token_ids=None)["token_ids"][:, length:]
