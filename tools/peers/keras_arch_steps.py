"""Times training steps of this project's models, compiled as its recipes compile them."""

# Keras imports TensorFlow, where it is installed, when it first writes a model's config: two
# seconds of a first call. KerasHub imports it before the clock starts.
import tensorflow  # noqa: F401

import keras_arch as ka
from peers.fit_steps import step_seconds


def time_steps(model, inputs, targets, steps, **optimizer):
    """Returns the seconds of each step.

    Args:
        model: The model.
        inputs: Dict of arrays of one batch.
        targets: int32 `[B, T]` or `[B]`.
        steps: Batches.
        optimizer: Options of `AdamW`.
    """
    ka.training.keep_freed_memory()
    model.compile(
        ka.training.AdamW(1e-3, **optimizer),
        ka.objectives.TokenCrossentropy(),
        jit_compile=ka.training.strategy("one").jit_compile(),
    )
    return step_seconds(model, inputs, targets, steps)
