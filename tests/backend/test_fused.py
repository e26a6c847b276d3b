import keras
import numpy as np
import pytest
from keras import ops

from keras_arch.backend import fused_recurrence
from tests.references import recurrent as reference

TORCH = keras.backend.backend() == "torch"
BATCH, TIME, INPUTS, WIDTH = 2, 4, 3, 5
CELLS = {
    "LSTM": (reference.lstm, 4, 2),
    "GRU": (reference.gru, 3, 1),
    "RNN": (reference.elman, 1, 1),
}


def arguments(kind, seed=0):
    """The arrays of `fused_recurrence`, as numpy; the second bias of the candidate alone."""
    _, gates, states = CELLS[kind]
    random = np.random.default_rng(seed)
    shapes = [(BATCH, TIME, INPUTS), (INPUTS, gates * WIDTH), (WIDTH, gates * WIDTH)]
    x, kernel, recurrent = (random.normal(size=shape).astype("float32") for shape in shapes)
    bias, more = random.normal(size=(2, gates * WIDTH)).astype("float32")
    more[: 2 * WIDTH if kind == "GRU" else None] = 0.0
    state = [random.normal(size=(BATCH, WIDTH)).astype("float32") for _ in range(states)]
    return x, np.ones((BATCH, TIME), "bool"), state, (kernel, recurrent), (bias, more)


def run(kind, x, valid, state, matrices, biases, reverse=False, dtype="float32"):
    x = ops.cast(ops.convert_to_tensor(x), dtype)
    given = [[ops.convert_to_tensor(a) for a in arrays] for arrays in (state, matrices, biases)]
    return fused_recurrence(kind, x, ops.convert_to_tensor(valid), *given, reverse)


@pytest.mark.skipif(not TORCH, reason="only PyTorch has such kernels")
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", CELLS)
def test_equals_the_reference(kind, reverse):
    x, valid, state, (kernel, recurrent), (bias, more) = given = arguments(kind)
    last, sequence = run(kind, *given, reverse)
    weights = {"kernel": kernel, "recurrent_kernel": recurrent, "bias": bias}
    weights["recurrent_bias"] = more[2 * WIDTH :]
    wanted, ends = reference.run(CELLS[kind][0], x, valid, state, weights, reverse)
    for got, want in zip([sequence, *last], [wanted, *ends], strict=True):
        np.testing.assert_allclose(ops.convert_to_numpy(got), want, atol=1e-5)


def test_is_none_where_the_kernel_would_be_wrong():
    x, valid, *rest = arguments("LSTM")
    padded = valid.copy()
    padded[1, 0] = False
    assert run("LSTM", x, padded, *rest) is None
    assert run("LSTM", x[:, :1], valid[:, :1], *rest) is None
    assert run("LSTM", x, valid, *rest, dtype="bfloat16") is None
    assert (run("LSTM", x, valid, *rest) is None) is not TORCH
