"""Times the steps of a Keras model's plain `fit`."""

import itertools
import time

import keras
import numpy as np


def step_seconds(model, inputs, targets, steps):
    """Returns the seconds between the steps of a `fit` over `steps` equal batches.

    Args:
        model: A compiled model.
        inputs: Dict of arrays of one batch, `[B, T]`.
        targets: int32 `[B, T]` or `[B]`.
        steps: Batches.
    """
    marks = []
    mark = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda step, logs: marks.append(
            (float(logs["loss"]), time.perf_counter())[1]
        )
    )
    model.fit(
        {name: np.tile(x, (steps, 1)) for name, x in inputs.items()},
        np.concatenate([targets] * steps),
        batch_size=len(targets),
        shuffle=False,
        verbose=0,
        callbacks=[mark],
    )
    return [after - before for before, after in itertools.pairwise(marks)]
