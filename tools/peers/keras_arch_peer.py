"""This project."""

import numpy as np

import keras_arch as ka
from peers.keras_arch_steps import time_steps


def _model(shape):
    return ka.models.gpt2(ka.models.GPT2Config(**shape._asdict()))


def train(shape, inputs, targets, steps, mode):
    """Returns the seconds of each step."""
    model = _model(shape)
    valid = np.ones(inputs.shape, "bool")
    return time_steps(
        model,
        {"token_ids": inputs, "valid": valid},
        targets,
        steps,
        weight_decay=0.1,
        beta_2=0.99,
        global_clipnorm=1.0,
    )


def generator(shape, prompts, new_tokens, mode):
    """Returns a function that generates after the prompts and returns the new ids."""
    model = _model(shape)
    return lambda: ka.generate(model, prompts.tolist(), new_tokens).token_ids
