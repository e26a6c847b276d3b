"""This project's BART."""

import numpy as np

import keras_arch as ka
from peers.keras_arch_steps import time_steps


def _model(shape):
    config = ka.models.BARTConfig(
        vocabulary_size=shape.vocabulary_size,
        width=shape.width,
        encoder_layers=shape.layers,
        decoder_layers=shape.layers,
        heads=shape.heads,
        context_length=shape.context_length,
    )
    return ka.models.bart(config)


def train(shape, inputs, targets, steps, mode):
    """Returns the seconds of each step."""
    model, valid = _model(shape), np.ones(inputs.shape, "bool")
    values = {"source_ids": inputs, "source_valid": valid, "token_ids": inputs, "valid": valid}
    return time_steps(model, values, targets, steps, weight_decay=0.01)


def generator(shape, prompts, new_tokens, mode):
    """Returns a function that generates from the prompts as sources and returns the new ids."""
    model = _model(shape)
    begins, context = [[1]] * len(prompts), {"source_ids": prompts.tolist()}
    return lambda: ka.generate(model, begins, new_tokens, context=context).token_ids
