import keras
import numpy as np
import pytest
from keras import ops

from keras_arch.backend import compile_function, scan
from tests.layers.gradients import gradients

TENSORFLOW = keras.backend.backend() == "tensorflow"
TIME, BATCH, WIDTH = 5, 3, 2

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(TIME, BATCH, WIDTH)).astype("float32")
KEEP = RANDOM.random((TIME, BATCH)) > 0.4
STATE = RANDOM.normal(size=(BATCH, WIDTH)).astype("float32")
MATRIX = RANDOM.normal(size=(WIDTH, WIDTH)).astype("float32")


def body(state, step):
    """`tanh(h M + x)` where kept; the output's shape is not the state's."""
    new = ops.tanh(ops.matmul(state["h"], MATRIX) + step["x"])
    new = ops.where(step["keep"][:, None], new, state["h"])
    return {"h": new}, {"sum": ops.sum(new, axis=-1), "twice": (new, 2.0 * new)}


def expected(reverse):
    h, outputs = STATE.astype("float64"), np.zeros((TIME, BATCH, WIDTH))
    for t in range(TIME)[:: -1 if reverse else 1]:
        h = np.where(KEEP[t][:, None], np.tanh(h @ MATRIX + X[t]), h)
        outputs[t] = h
    return h, outputs


def run(state, x, keep, reverse):
    state, output = scan(body, {"h": state}, {"x": x, "keep": keep}, reverse=reverse)
    return state["h"], output["sum"], *output["twice"]


def check(found, reverse):
    state, outputs = expected(reverse)
    for got, want in zip(found, [state, outputs.sum(-1), outputs, 2 * outputs], strict=True):
        np.testing.assert_allclose(ops.convert_to_numpy(got), want, atol=1e-6)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_equals_a_loop_in_numpy(reverse, compiled):
    def function(*arrays):
        return run(*arrays, reverse)

    arrays = [ops.convert_to_tensor(array) for array in (STATE, X, KEEP)]
    check((compile_function(function, []) if compiled else function)(*arrays), reverse)


def test_a_single_step_equals_the_body():
    state, output = scan(body, {"h": STATE}, {"x": X[:1], "keep": KEEP[:1]})
    np.testing.assert_array_equal(ops.convert_to_numpy(output["twice"][0][0]), state["h"])
    wanted = np.where(KEEP[0][:, None], np.tanh(STATE @ MATRIX + X[0]), STATE)
    np.testing.assert_allclose(ops.convert_to_numpy(state["h"]), wanted, atol=1e-6)


def numeric_gradient(function, array):
    found = np.zeros(array.shape)
    for index in np.ndindex(*array.shape):
        ends = []
        for change in (1e-6, -1e-6):
            moved = array.astype("float64")
            moved[index] += change
            ends.append(function(moved))
        found[index] = (ends[0] - ends[1]) / 2e-6
    return found


def test_gradients_equal_differences():
    def loss_in_numpy(x):
        h, total = STATE.astype("float64"), 0.0
        for t in range(TIME):
            h = np.where(KEEP[t][:, None], np.tanh(h @ MATRIX + x[t]), h)
            total += (h**2).sum()
        return total

    def loss(x):
        return ops.sum(ops.square(run(ops.convert_to_tensor(STATE), x, KEEP, False)[2]))

    (found,) = gradients(loss, [], [X])
    np.testing.assert_allclose(found, numeric_gradient(loss_in_numpy, X), atol=1e-4)


@pytest.mark.skipif(not TENSORFLOW, reason="only TensorFlow has programs of its own here")
@pytest.mark.parametrize("jit_compile", [False, True])
def test_gradients_in_a_graph_equal_those_without(jit_compile):
    import tensorflow as tf

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(run(tf.constant(STATE), x, tf.constant(KEEP), True)[2] ** 2)
        return tape.gradient(loss, x)

    x = tf.constant(X)
    compiled = tf.function(gradient, jit_compile=jit_compile)
    np.testing.assert_allclose(compiled(x), gradient(x), atol=1e-5)


@pytest.mark.skipif(not TENSORFLOW, reason="only TensorFlow has programs of open shapes")
def test_a_saved_program_takes_any_length_and_batch(tmp_path):
    import tensorflow as tf

    spec = [tf.TensorSpec([None, WIDTH]), tf.TensorSpec([None, None, WIDTH])]
    spec.append(tf.TensorSpec([None, None], tf.bool))
    module = tf.Module()
    module.run = tf.function(lambda *arrays: run(*arrays, False), input_signature=spec)
    tf.saved_model.save(module, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    check(loaded.run(STATE, X, KEEP), False)
    first = loaded.run(STATE[:1], X[:2, :1], KEEP[:2, :1])
    np.testing.assert_allclose(first[2], expected(False)[1][:2, :1], atol=1e-6)
