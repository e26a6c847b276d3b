import numpy as np
import pytest
from keras import ops

from keras_arch.generation.acceptance import accept, draw, insert


def numpy(x):
    return ops.convert_to_numpy(x)


def tensors(*arrays):
    return [ops.convert_to_tensor(array) for array in arrays]


@pytest.mark.parametrize(
    ("uniform", "accepted", "final"),
    [
        # Tokens 0 and 1 were drafted. p/q of them: 0.2/0.4 and 0.6/0.3.
        ([0.49, 0.99, 0.0], 2, 0),
        ([0.49, 0.99, 0.51], 2, 1),
        # Rejected at the first: max(p - q, 0) is [0, 0.05, 0.15].
        ([0.51, 0.0, 0.2], 0, 1),
        ([0.51, 0.0, 0.3], 0, 2),
    ],
)
def test_accepts_by_the_ratio_and_draws_from_what_is_left(uniform, accepted, final):
    p = np.array([[[0.2, 0.35, 0.45], [0.2, 0.6, 0.2], [0.5, 0.5, 0.0]]], "float32")
    q = np.array([[[0.4, 0.3, 0.3], [0.4, 0.3, 0.3], [0.0, 0.0, 1.0]]], "float32")
    found = accept(
        *tensors(p, q, np.array([[0, 1]], "int32"), np.array([2], "int32")),
        *tensors(np.array(uniform, "float32")[:, None]),
    )
    assert [int(x[0]) for x in found] == [accepted, final]


def test_unused_drafts_neither_stand_nor_count():
    p = np.array([[[0.0, 1.0], [0.5, 0.5]]], "float32")
    q = np.array([[[0.0, 1.0], [0.0, 0.0]]], "float32")
    for usable, accepted in ((0, 0), (1, 1)):
        found = accept(
            *tensors(p, q, np.array([[1]], "int32"), np.array([usable], "int32")),
            *tensors(np.array([[0.1], [0.6]], "float32")),
        )
        assert [int(x[0]) for x in found] == [accepted, 1]


def test_one_token_is_distributed_as_the_model():
    """Over a fine grid of the three random numbers, what stands or replaces has the weights p."""
    p, q = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.4, 0.3, 0.2, 0.1])
    grid = (np.arange(40) + 0.5) / 40
    u, v, w = (x.ravel().astype("float32") for x in np.meshgrid(grid, grid, grid))
    rows = u.size
    token = numpy(draw(*tensors(np.tile(q, (rows, 1)).astype("float32"), u)))
    one = np.tile(np.stack([p, p])[None], (rows, 1, 1)).astype("float32")
    two = np.tile(np.stack([q, q])[None], (rows, 1, 1)).astype("float32")
    accepted, final = map(
        numpy,
        accept(
            *tensors(one, two, token[:, None].astype("int32"), np.ones(rows, "int32")),
            *tensors(np.stack([v, w])),
        ),
    )
    first = np.where(accepted == 1, token, final)
    np.testing.assert_allclose(np.bincount(first, minlength=4) / rows, p, atol=5e-3)
    # min(1, p / q) on average: the sum of min(p, q).
    np.testing.assert_allclose(accepted.mean(), np.minimum(p, q).sum(), atol=5e-3)


def test_draws_by_weight():
    weights = np.tile(np.array([[0.0, 2.0, 0.0, 6.0]], "float32"), (4, 1))
    uniform = np.array([0.0, 0.24, 0.26, 1 - 2.0**-23], "float32")
    assert numpy(draw(*tensors(weights, uniform))).tolist() == [1, 1, 3, 3]


def test_inserts_each_row_at_its_place():
    x = np.zeros((3, 5), "int32")
    values = np.array([[1, 2, 3]] * 3, "int32")
    begin, count = np.array([0, 2, 4], "int32"), np.array([3, 2, 0], "int32")
    expected = [[1, 2, 3, 0, 0], [0, 0, 1, 2, 0], [0] * 5]
    assert numpy(insert(*tensors(x, values, begin, count))).tolist() == expected
