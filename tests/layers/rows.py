"""Four rows of six tokens that every layer is tried on, and what the tests do with layers."""

import keras
import numpy as np
from keras import ops

from tests.references.positions import token_positions

BATCH, TIME, WIDTH = 4, 6, 8

#: Full; pads on the left; pads on the right; pads within.
VALID = np.array(
    [[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0], [1, 0, 1, 1, 0, 1]], "bool"
)
POSITIONS = token_positions(VALID).astype("int32")
#: Two or three documents a row; the numbers are neither dense nor ordered.
SEGMENTS = np.array(
    [[0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 2, 2], [5, 1, 1, 1, 1, 1], [3, 3, 3, 0, 0, 1]], "int32"
)
SEGMENT_POSITIONS = token_positions(VALID, SEGMENTS).astype("int32")


def normal(*shape, seed=0):
    """Normal numbers, float32."""
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def inputs():
    """float32 [4, 6, 8]."""
    return normal(BATCH, TIME, WIDTH)


def randomize(layer, seed=1):
    """Gives every weight, norms and biases too, normal numbers; returns the layer."""
    rng = np.random.default_rng(seed)
    layer.set_weights([rng.normal(size=w.shape, scale=0.5) for w in layer.get_weights()])
    return layer


def run(function, *arguments, **keywords):
    """Calls with tensors made of numpy arrays; returns float32 (or int) numpy."""

    def tensor(value):
        return ops.convert_to_tensor(value) if isinstance(value, np.ndarray) else value

    result = function(
        *[tensor(value) for value in arguments],
        **{name: tensor(value) for name, value in keywords.items()},
    )
    return to_numpy(result)


def to_numpy(tensor):
    """Numpy, bfloat16 as float32."""
    if keras.backend.standardize_dtype(tensor.dtype) in ("bfloat16", "float16"):
        tensor = ops.cast(tensor, "float32")
    return ops.convert_to_numpy(tensor)


def step_through(layer, chunks, *arguments, **keywords):
    """Runs `start` and `step` over chunks of the arguments; returns the outputs joined.

    Args:
        layer: Has `start` and `step`.
        chunks: Lengths of the chunks; they sum to T.
        arguments, keywords: numpy arrays [B, T, ...], cut on axis 1; None stays.
    """
    state = layer.start(len(arguments[0]), sum(chunks))
    outputs, cursor = [], 0

    def cut(value, size):
        if value is None:
            return None
        return ops.convert_to_tensor(value[:, cursor : cursor + size])

    for size in chunks:
        output, state = layer.step(
            *[cut(value, size) for value in arguments],
            **{name: cut(value, size) for name, value in keywords.items()},
            state=state,
            cursor=ops.convert_to_tensor(cursor, "int32"),
        )
        outputs.append(to_numpy(output))
        cursor += size
    return outputs


CHUNKS = [(1,) * TIME, (3, 3), (TIME,)]
