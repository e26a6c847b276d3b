import dataclasses

import keras
import numpy as np
import pytest
from keras import ops

import keras_arch as ka
from keras_arch.backend import compile_function
from keras_arch.generation.states import (
    LENGTHS,
    check_rewind,
    find_slot_axes,
    rewind,
    take_rows,
)
from tests.contracts.tiny import CONFIGS, CONTEXT, V, build, logits
from tests.generation import encoder_decoder

PROMPT_VALID = np.arange(5) >= np.array([[0], [2], [4], [0]])
# Rows that drop all of 3 tokens, 1 of 2 and none, and one that had ended.
VALID = np.array([[1, 1, 1], [1, 1, 0], [1, 1, 1], [0, 0, 0]], "bool")
KEPT = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 1], [0, 0, 0]], "bool")


@pytest.mark.parametrize(
    ("label", "rows", "cursor"),
    [("gpt2", [0, 1, 2, 3], 8), ("llama-window", [0, 1, 2, 3], 8), ("llama-window", [1], 6)],
)
def test_what_was_forgotten_leaves_no_trace(label, rows, cursor):
    model = build(dataclasses.replace(CONFIGS[label], layers=1))
    stepper = ka.generation.Stepper(model)
    random = np.random.default_rng(0)
    prompt, chunk, after = (random.integers(0, V, (4, n)).astype("int32")[rows] for n in (5, 3, 2))
    real, valid, kept = PROMPT_VALID[rows], VALID[rows], KEPT[rows]

    def run(prompt, real, chunk, valid, kept, after):
        _, state = stepper.step(prompt, real, stepper.start(len(rows), CONTEXT))
        _, state = stepper.step(chunk, valid, state)
        state = rewind(stepper, state, valid, kept)
        output, _ = stepper.step(after, ops.ones_like(after, "bool"), state)
        return output, state["cursor"]

    outputs = compile_function(run, stepper.variables)(prompt, real, chunk, valid, kept, after)
    found, end = map(ops.convert_to_numpy, outputs)
    assert end == cursor
    for i in range(len(rows)):
        row = np.concatenate([prompt[i][real[i]], chunk[i][kept[i]], after[i]])
        np.testing.assert_allclose(found[i], logits(model, row[None])[0, -2:], atol=1e-5, rtol=0)


def test_rows_are_taken_with_all_they_remember():
    stepper = ka.generation.Stepper(build(CONFIGS["gpt2"]))
    ids = ops.convert_to_tensor(np.array([[1, 2], [3, 4]], "int32"))
    valid = ops.ones_like(ids, "bool")
    _, state = stepper.step(ids, valid, stepper.start(2, 4))
    moved = take_rows(state, ops.convert_to_tensor(np.array([1, 0, 1], "int32")), 2)
    after = ops.convert_to_tensor(np.array([[5], [5], [5]], "int32"))
    found, _ = stepper.step(after, ops.ones_like(after, "bool"), moved)
    expected, _ = stepper.step(after[:2], valid[:, :1], state)
    found, expected = map(ops.convert_to_numpy, (found, expected))
    np.testing.assert_allclose(found, expected[[1, 0, 1]], atol=1e-6)


def test_slot_axes_are_those_that_grow_with_the_length():
    def axes(layer):
        return find_slot_axes(*(layer.start(1, length) for length in LENGTHS))

    found = axes(ka.layers.SelfAttention(2, 4, name="attention"))
    assert found == {"key": 1, "value": 1, "segment": 1}
    assert axes(ka.layers.TokenPositions()) == {"count": -1, "segment": -1}


def test_memory_stays_where_it_is():
    stepper = ka.generation.Stepper(encoder_decoder.build())
    assert stepper.slot_axes["cross"] == {}
    check_rewind(stepper)
    context = {n: ops.convert_to_tensor(x) for n, x in encoder_decoder.padded().items()}
    state = stepper.start(3, CONTEXT, context)
    moved = take_rows(state, ops.convert_to_tensor(np.array([0, 0, 1, 1, 2, 2], "int32")), 3)
    assert moved["layers"]["cross"]["memory"] is state["layers"]["cross"]["memory"]
    ids = ops.convert_to_tensor(np.array([[5], [6]] * 3, "int32"))
    found, _ = stepper.step(ids, ops.ones_like(ids, "bool"), moved)
    for entry in (0, 1):
        alone = ids[entry::2]
        expected, _ = stepper.step(alone, ops.ones_like(alone, "bool"), state)
        pair = map(ops.convert_to_numpy, (found[entry::2], expected))
        np.testing.assert_allclose(*pair, atol=1e-5)


@keras.saving.register_keras_serializable(package="keras_arch_tests")
class RunningMean(ka.layers.Part):
    """The mean of the vectors so far: a state that is not one of slots."""

    def call(self, x):
        count = ops.arange(1, ops.shape(x)[1] + 1, dtype="float32")
        return ops.cumsum(x, axis=1) / count[:, None]

    def start(self, batch, length):
        return {"sum": ops.zeros((batch, 16)), "count": ops.zeros((batch, 1))}

    def step(self, x, *, state, cursor):
        count = state["count"] + ops.arange(1, x.shape[1] + 1, dtype="float32")
        total = state["sum"][:, None] + ops.cumsum(x, axis=1)
        return total / count[..., None], {"sum": total[:, -1], "count": count[:, -1:]}


def recurrent_model():
    inputs = {
        "token_ids": keras.Input((None,), dtype="int32", name="token_ids"),
        "valid": keras.Input((None,), dtype="bool", name="valid"),
    }
    x = ka.layers.TokenEmbedding(V, 16, name="tokens")(inputs["token_ids"])
    x = RunningMean(name="running_mean")(x)
    return keras.Model(inputs, ka.layers.CausalLMHead(V, name="head")(x))


def test_a_layer_that_cannot_forget_is_refused_by_name():
    stepper = ka.generation.Stepper(recurrent_model())
    with pytest.raises(ValueError, match=r"'running_mean' \(RunningMean\) cannot forget tokens"):
        check_rewind(stepper)
    check_rewind(ka.generation.Stepper(build(CONFIGS["llama"])))
