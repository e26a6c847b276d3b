import numpy as np
import pytest
from keras import ops

from keras_arch import layers

#: Pads on the left, on the right, inside, everywhere.
VALID = np.array(
    [[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0], [1, 0, 1, 0, 0, 1], [0, 0, 0, 0, 0, 0]], "bool"
)
X = np.random.default_rng(0).normal(size=(4, 6, 3)).astype("float32")


def expected(size):
    """The windows at the real tokens, 0 at pads, by one row and one token at a time."""
    windows = np.zeros((4, 6, size * 3), "float32")
    for row, valid, out in zip(X, VALID, windows, strict=True):
        seen = [np.zeros(3, "float32")] * size
        for t in np.flatnonzero(valid):
            seen = [*seen, row[t]]
            out[t] = np.concatenate(seen[len(seen) - size :]) if size else []
    return windows


@pytest.mark.parametrize("size", [0, 1, 2, 8])
def test_joins_the_last_real_vectors(size):
    windows = layers.FixedWindow(size)(X, VALID)
    assert tuple(windows.shape) == (4, 6, size * 3)
    windows = ops.convert_to_numpy(windows) * VALID[..., None]
    np.testing.assert_array_equal(windows, expected(size))


@pytest.mark.parametrize("chunks", [[1] * 6, [2, 3, 1]])
def test_steps_equal_the_whole(chunks):
    layer = layers.FixedWindow(2)
    layer.build(X.shape, VALID.shape)
    state, parts, begin = layer.start(4, 6), [], 0
    for chunk in chunks:
        now = slice(begin, begin + chunk)
        part, state = layer.step(X[:, now], VALID[:, now], state=state, cursor=begin)
        parts.append(ops.convert_to_numpy(part))
        begin += chunk
    windows = np.concatenate(parts, axis=1) * VALID[..., None]
    np.testing.assert_array_equal(windows, expected(2))


def test_negative_size_is_named():
    with pytest.raises(ValueError, match="size must be a non-negative integer; received size=-1"):
        layers.FixedWindow(-1)
