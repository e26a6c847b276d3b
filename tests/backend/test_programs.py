import dataclasses

import keras
import numpy as np
import pytest
from keras import ops

from keras_arch.backend import compile_function, compile_loop, write_slots

TORCH = keras.backend.backend() == "torch"


@dataclasses.dataclass(frozen=True)
class Powers:
    """Writes 1, a, a^2, ... into a row, up to a limit; a is the base times a weight."""

    weight: keras.Variable
    slots: int = 6

    def begin(self, base, limit):
        row = ops.zeros((1, self.slots), "float32")
        # Two entries of the state that are one tensor.
        return ops.zeros((), "int32"), base * 0 + 1, {"both": {"a": row, "b": row}}, base, limit

    def running(self, i, power, rows, base, limit):
        return i < limit

    def body(self, i, power, rows, base, limit):
        column = ops.reshape(power, (1, 1))
        # In another order than the old state's.
        both = {
            "b": write_slots(rows["both"]["b"], -column, i, axis=1),
            "a": write_slots(rows["both"]["a"], column, i, axis=1),
        }
        rows = {"both": both}
        return i + 1, power * base * self.weight, rows, base, limit

    def finish(self, i, power, rows, base, limit):
        return i, rows["both"]["a"], rows["both"]["b"], None


def test_a_loop_runs_to_its_end_and_follows_variables():
    weight = keras.Variable(1.0, dtype="float32")
    run = compile_loop(Powers(weight), [weight])
    for value, base, limit in ((1.0, 2.0, 4), (1.0, 3.0, 6), (0.5, 4.0, 5), (1.0, 2.0, 0)):
        weight.assign(value)
        i, a, b, nothing = run(np.float32(base), np.int32(limit))
        expected = np.where(np.arange(6) < limit, (base * value) ** np.arange(6), 0.0)[None]
        assert int(i) == limit
        np.testing.assert_allclose(ops.convert_to_numpy(a), expected, rtol=1e-6)
        np.testing.assert_allclose(ops.convert_to_numpy(b), -expected, rtol=1e-6)
        assert nothing is None


def test_a_function_follows_variables():
    weight = keras.Variable(np.ones((2, 2), "float32"))
    run = compile_function(lambda x: ops.matmul(x, weight), [weight])
    x = np.array([[1.0, 2.0]], "float32")
    np.testing.assert_array_equal(ops.convert_to_numpy(run(x)), [[3.0, 3.0]])
    weight.assign(2 * np.eye(2, dtype="float32"))
    np.testing.assert_array_equal(ops.convert_to_numpy(run(x)), [[2.0, 4.0]])


@pytest.mark.parametrize("nothing", [{}, {"c": {}}], ids=["empty", "nested"])
def test_arguments_may_be_nested(nothing):
    run = compile_function(lambda x, more: x + more["a"] * more["b"][0], [])
    three = np.float32(3.0)
    for x in (1.0, 2.0):
        found = run(np.float32(x), {"a": np.float32(2.0), "b": (three,), **nothing})
        assert float(found) == x + 6.0


@pytest.mark.skipif(not TORCH, reason="of the programs that are traced for PyTorch")
class TestTorchProgram:
    def program(self, function, **options):
        from keras_arch.backend.torch_program import TorchProgram

        return TorchProgram(function, [], **options)

    def test_equals_the_function(self):
        """Products with and without biases, repeated and useless operations, views, constants."""
        random = np.random.default_rng(0)
        x, kernel = (random.normal(size=s).astype("float32") for s in ((2, 3, 4), (4, 4)))
        bias = random.normal(size=4).astype("float32")

        def function(x, kernel, bias):
            y = ops.matmul(x * 1.0, kernel) + bias
            z = ops.matmul(x * 1.0, kernel) + ops.expand_dims(bias, 0)
            y = ops.transpose(ops.reshape(y, (2, 3, 2, 2)), (0, 2, 1, 3))
            y = ops.reshape(y, (2, -1)) - ops.maximum(ops.reshape(z, (2, -1)), 0.0)
            return {"y": y, "same": (x, ops.cast(x, "float32")), "none": None}

        y = x @ kernel + bias
        mixed = y.reshape(2, 3, 2, 2).transpose(0, 2, 1, 3).reshape(2, -1)
        program = self.program(function)
        for factor in (1.0, 2.0):
            found = program(x * factor, kernel / factor, bias)
            expected = mixed - np.maximum(y.reshape(2, -1), 0.0)
            np.testing.assert_allclose(found["y"], expected, rtol=1e-5, atol=1e-6)
            np.testing.assert_array_equal(found["same"][1], x * factor)
            assert found["none"] is None

    def test_refuses_a_branch_on_values(self):
        with pytest.raises(Exception, match="data-dependent"):
            self.program(lambda x: x + 1 if x.sum() > 0 else x)(np.ones(2, "float32"))

    def test_writes_into_its_arguments_only_where_it_owns_them(self):
        import torch

        def write(cache):
            return write_slots(cache, ops.ones((1, 1)), 0, axis=1)

        def write_and_keep(cache):
            return write(cache), cache + 0

        for function, owns, first in (
            (write, False, 0.0),
            (write, True, 1.0),
            (write_and_keep, True, 0.0),  # the old one is read as well
        ):
            cache = torch.zeros(1, 3)
            self.program(function, owns_arguments=owns)(cache)
            assert cache[0, 0] == first
