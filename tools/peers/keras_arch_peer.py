"""This project."""

import numpy as np

# Keras imports TensorFlow, where it is installed, when it first writes a model's config: two
# seconds of a first call. KerasHub imports it before the clock starts.
import tensorflow  # noqa: F401

import keras_arch as ka
from peers.fit_steps import step_seconds


def _model(shape):
    return ka.models.gpt2(ka.models.GPT2Config(**shape._asdict()))


def train(shape, inputs, targets, steps, mode):
    """Returns the seconds of each step."""
    ka.training.keep_freed_memory()
    model = _model(shape)
    model.compile(
        ka.training.AdamW(1e-3, weight_decay=0.1, beta_2=0.99, global_clipnorm=1.0),
        ka.objectives.TokenCrossentropy(),
        jit_compile=ka.training.strategy("one").jit_compile(),
    )
    valid = np.ones(inputs.shape, "bool")
    return step_seconds(model, {"token_ids": inputs, "valid": valid}, targets, steps)


def generator(shape, prompts, new_tokens, mode):
    """Returns a function that generates after the prompts and returns the new ids."""
    model = _model(shape)
    if mode == "int8":
        model.quantize("int8")
    return lambda: ka.generate(model, prompts.tolist(), new_tokens).token_ids
