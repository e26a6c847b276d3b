import numpy as np
import pytest
from keras import ops

from keras_arch.generation.nucleus import first_nucleus, nucleus
from tests.references import filters as reference


def check(logits, p):
    expected = [np.isfinite(reference.top_p(row, p)) for row in logits.tolist()]
    found = ops.convert_to_numpy(nucleus(ops.convert_to_tensor(logits), p))
    np.testing.assert_array_equal(found, expected)
    order = np.argsort(-logits, axis=-1, kind="stable")
    ordered = np.take_along_axis(logits, order, axis=-1)
    probabilities = np.array([reference.probabilities(row) for row in ordered], "float32")
    found = ops.convert_to_numpy(first_nucleus(ops.convert_to_tensor(probabilities), p))
    np.testing.assert_array_equal(found, np.take_along_axis(np.array(expected), order, axis=-1))


@pytest.mark.parametrize("p", [0.0, 1e-7, 0.31, 0.9, 0.99])
def test_a_nucleus_equals_its_reference(p):
    check(np.random.default_rng(0).normal(scale=3.0, size=(8, 300)).astype("float32"), p)


@pytest.mark.parametrize("p", [0.13, 0.5, 0.77])
def test_of_equals_the_first_are_kept(p):
    # Few values, as bfloat16 gives, and some tokens that are forbidden.
    logits = np.random.default_rng(1).integers(-2, 3, (8, 40)).astype("float32")
    logits[:, ::7] = -np.inf
    check(logits, p)
    check(np.zeros((2, 11), "float32"), p)


def test_what_holds_p_up_to_rounding_is_enough():
    for probabilities in ([0.5, 0.3, 0.15, 0.05], [0.05, 0.15, 0.3, 0.5]):
        logits = ops.convert_to_tensor(np.log([probabilities]).astype("float32"))
        for p, count in ((0.5, 1), (0.8, 2), (0.95, 3), (0.951, 4)):
            assert int(ops.sum(ops.cast(nucleus(logits, p), "int32"))) == count


def test_large_and_far_logits():
    check(np.array([[1e30, 1e30, -1e30, 0.0], [-1e4, -1e4 + 1, -1e4 + 2, -2e4]], "float32"), 0.8)
