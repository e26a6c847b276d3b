"""What KerasHub's peers share: the shape of a backbone, and how a model is compiled and timed."""

import keras

from peers.fit_steps import step_seconds
from peers.modes import jit_compile


def backbone_options(shape):
    """Returns the arguments of a backbone of a shape."""
    return {
        "vocabulary_size": shape.vocabulary_size,
        "num_layers": shape.layers,
        "num_heads": shape.heads,
        "hidden_dim": shape.width,
        "intermediate_dim": 4 * shape.width,
        "max_sequence_length": shape.context_length,
        "dropout": 0.0,
    }


def time_steps(model, inputs, targets, steps, mode, **optimizer):
    """Returns the seconds of each step; `optimizer` are options of `AdamW`."""
    model.compile(
        keras.optimizers.AdamW(1e-3, **optimizer),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        weighted_metrics=[],
        jit_compile=jit_compile(mode),
    )
    return step_seconds(model, inputs, targets, steps)
