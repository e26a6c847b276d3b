import keras
import numpy as np
import pytest
from keras import ops

from keras_arch.backend import compile_function, recur, scan
from tests.layers.gradients import gradients

TENSORFLOW = keras.backend.backend() == "tensorflow"
TIME, BATCH, WIDTH = 5, 3, 4

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(TIME, BATCH, WIDTH)).astype("float32")
KEEP = RANDOM.random((TIME, BATCH)) > 0.4
H = RANDOM.normal(size=(BATCH, WIDTH)).astype("float32")
FIRST = RANDOM.normal(size=(WIDTH, 6)).astype("float32")
SECOND = RANDOM.normal(size=(6, WIDTH)).astype("float32")
OFFSET = RANDOM.normal(size=(6,)).astype("float32")
ARRAYS = [X, H, FIRST, SECOND, OFFSET]


def body(state, step, multiply, shared):
    """Two products, the second of what the first makes; an output unlike the state."""
    middle = ops.tanh(multiply["first"](state["h"]) * shared["offset"])
    new = ops.tanh(step["x"] + multiply["second"](middle + shared["offset"]))
    new = ops.where(step["keep"][:, None], new, state["h"])
    return {"h": new}, (new, ops.sum(middle, axis=-1))


def run(how, x, h, first, second, offset, reverse=False):
    state, inputs = {"h": h}, {"x": x, "keep": ops.convert_to_tensor(KEEP[: x.shape[0]])}
    matrices, shared = {"second": second, "first": first}, {"offset": offset}
    if how == "recur":
        return recur(body, state, inputs, matrices, shared, reverse)
    multiply = {name: lambda x, w=w: ops.matmul(x, w) for name, w in matrices.items()}
    return scan(lambda *step: body(*step, multiply, shared), state, inputs, reverse)


def loss(how, reverse, *arrays):
    state, (sequence, sums) = run(how, *arrays, reverse=reverse)
    return ops.sum(state["h"] ** 3) + ops.sum(sequence**2) + ops.sum(ops.sin(sums))


@pytest.mark.parametrize("reverse", [False, True])
def test_gradients_equal_those_of_the_plain_loop(reverse):
    found, wanted = (
        gradients(lambda *arrays, how=how: loss(how, reverse, *arrays), [], ARRAYS)
        for how in ("recur", "scan")
    )
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("time", [1, TIME])
def test_outputs_equal_those_of_the_plain_loop(time):
    arrays = [X[:time], *ARRAYS[1:]]
    outputs = []
    for how in ("recur", "scan"):

        def function(*arrays, how=how):
            state, (sequence, sums) = run(how, *arrays)
            return state["h"], sequence, sums

        outputs.append(compile_function(function, [])(*arrays))
    for got, want in zip(*outputs, strict=True):
        got, want = ops.convert_to_numpy(got), ops.convert_to_numpy(want)
        np.testing.assert_allclose(got, want, atol=1e-6)


def test_a_gradient_by_some_of_the_outputs():
    def last(how):
        return lambda *arrays: ops.sum(run(how, *arrays)[0]["h"])

    found, wanted = (gradients(last(how), [], ARRAYS) for how in ("recur", "scan"))
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_a_matrix_for_each_row():
    random = np.random.default_rng(1)
    arrays = [X, H, random.normal(size=(BATCH, WIDTH, WIDTH)).astype("float32")]

    def loss(how, x, h, each):
        def body(state, step, multiply, shared):
            new = ops.tanh(multiply[0](state["h"][:, None])[:, 0] + step)
            return {"h": new}, new

        if how == "recur":
            state, sequence = recur(body, {"h": h}, x, [each], {})
        else:
            state, sequence = scan(
                lambda *step: body(*step, [lambda x: ops.matmul(x, each)], {}), {"h": h}, x
            )
        return ops.sum(state["h"] ** 3) + ops.sum(sequence**2)

    found, wanted = (
        gradients(lambda *arrays, how=how: loss(how, *arrays), [], arrays)
        for how in ("recur", "scan")
    )
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(not TENSORFLOW, reason="the other backends compile gradients one way")
@pytest.mark.parametrize("jit_compile", [False, True])
def test_gradients_in_a_graph_equal_those_without(jit_compile):
    import tensorflow as tf

    def gradient(*arrays):
        with tf.GradientTape() as tape:
            tape.watch(arrays)
            value = loss("recur", False, *arrays)
        return tape.gradient(value, arrays)

    arrays = [tf.constant(array) for array in ARRAYS]
    compiled = tf.function(gradient, jit_compile=jit_compile)
    for got, want in zip(compiled(*arrays), gradient(*arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(not TENSORFLOW, reason="only TensorFlow has programs of open shapes")
def test_gradients_with_time_and_batch_open():
    import tensorflow as tf

    def gradient(x, keep, h):
        with tf.GradientTape() as tape:
            tape.watch(x)
            multiply = {"first": FIRST, "second": SECOND}
            inputs = {"x": x, "keep": keep}
            _, (sequence, _) = recur(body, {"h": h}, inputs, multiply, {"offset": OFFSET})
            value = tf.reduce_sum(sequence**2)
        return tape.gradient(value, x)

    spec = [tf.TensorSpec([None, None, WIDTH]), tf.TensorSpec([None, None], tf.bool)]
    compiled = tf.function(gradient, input_signature=[*spec, tf.TensorSpec([None, WIDTH])])
    for time, batch in ((TIME, BATCH), (2, 1)):
        arrays = [
            tf.constant(array) for array in (X[:time, :batch], KEEP[:time, :batch], H[:batch])
        ]
        np.testing.assert_allclose(compiled(*arrays), gradient(*arrays), rtol=1e-4, atol=1e-5)
