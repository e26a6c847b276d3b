import keras
import numpy as np
import pytest
from keras import ops

from keras_arch.backend import compile_function
from keras_arch.backend.gradients import pull_back, with_gradient
from tests.layers.gradients import gradients

pytestmark = pytest.mark.skipif(
    keras.backend.backend() == "torch", reason="PyTorch's loops have their own gradients"
)

X = np.array([1.0, -2.0, 3.0], "float32")
TIMES = np.array([2, 3, 4], "int32")


def forward(x, times):
    return [x * ops.cast(times, "float32"), x + 1.0], {"times": times}


def backward(kept, upstream):
    """Not the true gradient, so that it is seen which one is taken."""
    return [upstream[0] * 10.0 * ops.cast(kept["times"], "float32") + upstream[1], None]


def run(x):
    return with_gradient(forward, backward, [x, ops.convert_to_tensor(TIMES)])


def test_the_gradient_is_the_one_given():
    (found,) = gradients(lambda x: ops.sum(run(x)[0]) + 5.0 * ops.sum(run(x)[1]), [], [X])
    np.testing.assert_allclose(found, 10.0 * TIMES + 5.0)


def test_the_gradient_by_an_output_that_is_not_read_is_zero():
    (found,) = gradients(lambda x: ops.sum(run(x)[0]), [], [X])
    np.testing.assert_allclose(found, 10.0 * TIMES)


@pytest.mark.parametrize("compiled", [False, True])
def test_the_outputs_are_the_functions(compiled):
    first, second = (compile_function(run, []) if compiled else run)(ops.convert_to_tensor(X))
    np.testing.assert_allclose(ops.convert_to_numpy(first), X * TIMES)
    np.testing.assert_allclose(ops.convert_to_numpy(second), X + 1.0)


@pytest.mark.parametrize("compiled", [False, True])
def test_pulls_back_what_comes_to_the_outputs(compiled):
    def pull(x, y, up, more):
        # One tensor stands for two of the arguments.
        return pull_back(lambda x, y, z: [x * y, ops.sin(x)], [x, y, y], [up, more])

    arrays = [X, X + 1.0, X - 1.0, 2.0 * X]
    tensors = [ops.convert_to_tensor(array) for array in arrays]
    found = (compile_function(pull, []) if compiled else pull)(*tensors)
    x, y, up, more = arrays
    wanted = [up * y + more * np.cos(x), up * x, np.zeros(3)]
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ops.convert_to_numpy(got), want, atol=1e-5)
