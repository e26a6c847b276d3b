import dataclasses

import keras
import numpy as np
import pytest
from keras import ops

import keras_arch as ka
from keras_arch.backend import compile_function, run_loop
from keras_arch.generation import (
    Greedy,
    MinimumLength,
    MinP,
    NoRepeatNGram,
    RepetitionPenalty,
    Sample,
    Stepper,
    Temperature,
    TopK,
    TopP,
)
from keras_arch.generation.decode import Decode
from keras_arch.generation.prompts import pad_left
from tests.contracts.tiny import CONFIGS, CONTEXT, V, build, naive_greedy
from tests.references import filters as reference

ROWS = [[1, 2, 3, 4, 5], [7, 7], [9, 8, 7, 9, 8]]
SEED = np.array([5, 0], "int32")


def alibi():
    """A model whose positions are only biases: it has no longest sequence."""
    inputs = {
        "token_ids": keras.Input((None,), dtype="int32", name="token_ids"),
        "valid": keras.Input((None,), dtype="bool", name="valid"),
    }
    embedding = ka.layers.TokenEmbedding(V, 16, name="tokens")
    positions = ka.layers.TokenPositions(name="positions")(inputs["valid"])
    block = ka.layers.DecoderBlock(
        ka.layers.PreNorm(ka.layers.SelfAttention(4, 4), ka.layers.RMSNorm()),
        ka.layers.PreNorm(ka.layers.GatedFeedForward(24), ka.layers.RMSNorm()),
        name="block",
    )
    bias = ka.layers.AlibiBias(4, name="alibi")(positions)
    x = block(embedding(inputs["token_ids"]), positions, inputs["valid"], bias=bias)
    model = keras.Model(inputs, embedding(x, reverse=True))
    random = np.random.default_rng(0)
    for weight in model.weights:
        weight.assign(random.normal(scale=0.4, size=weight.shape))
    return model


MODELS = {
    "absolute": lambda: build(dataclasses.replace(CONFIGS["gpt2"], layers=1)),
    "rotary": lambda: build(dataclasses.replace(CONFIGS["llama"], layers=1)),
    "alibi": alibi,
}


@pytest.fixture(scope="module")
def model():
    return build(dataclasses.replace(CONFIGS["gpt2"], layers=1))


def decode(stepper, token_ids, valid, new, limit, sampler, seed, stop_ids, **options):
    """Runs the loop inside a program."""
    loop = Decode(stepper, new, sampler, **options)
    return run_loop(loop, token_ids, valid, limit, stop_ids, {}, seed)


def arguments(rows, sampler, new=8, pads=0, stop_ids=(), **options):
    """What `decode` takes besides the stepper: arrays, and a function of them."""
    token_ids, valid = pad_left(rows, max(2, max(map(len, rows))) + pads)
    # A pad holds a token that would be noticed.
    arrays = [np.where(valid, token_ids, 30), valid, np.int32(new), SEED]
    arrays.append(np.array(stop_ids, "int32"))

    def run(stepper, token_ids, valid, limit, seed, stop_ids):
        return decode(stepper, token_ids, valid, new, limit, sampler, seed, stop_ids, **options)

    return arrays, run


def decoded(model, rows, sampler, **options):
    arrays, run = arguments(rows, sampler, **options)
    stepper = Stepper(model)
    outputs = compile_function(lambda *args: run(stepper, *args), stepper.variables)(*arrays)
    return [None if output is None else ops.convert_to_numpy(output) for output in outputs]


@pytest.mark.parametrize("kind", MODELS)
def test_a_batch_with_any_pads_equals_each_row_alone(kind):
    model = MODELS[kind]()
    expected = np.concatenate([naive_greedy(model, [row], 8) for row in ROWS])
    for pads in (0, 1, 7):
        token_ids, valid, _ = decoded(model, ROWS, Greedy(), pads=pads)
        np.testing.assert_array_equal(token_ids, expected, err_msg=f"{pads} pads on the left")
        assert valid.all()
    padded, valid = np.full((3, 12), 30), np.zeros((3, 12), "bool")
    for i, row in enumerate(ROWS):
        padded[i, : len(row)], valid[i, : len(row)] = row, True
    generated = ka.generate(model, padded, 8, valid=valid)
    np.testing.assert_array_equal(generated.token_ids, expected, err_msg="pads on the right")


def naive_filtered(model, row, new, stop_ids):
    """Runs the whole model for each token and the reference's filters on its logits."""
    tokens = list(row)
    for steps in range(new):
        token_ids = np.zeros((1, CONTEXT), "int32")
        token_ids[0, : len(tokens)] = tokens
        valid = np.arange(CONTEXT)[None] < len(tokens)
        scores = model.predict_on_batch({"token_ids": token_ids, "valid": valid})
        z = scores[0, len(tokens) - 1].tolist()
        z = reference.repetition_penalty(z, tokens, 1.2)
        z = reference.no_repeat_ngram(z, tokens, 2)
        z = reference.minimum_length(z, steps, stop_ids, 5)
        tokens.append(int(np.argmax(z)))
        if tokens[-1] in stop_ids:
            break
    return tokens[len(row) :]


def test_filters_see_the_prompt_and_the_tokens_so_far(model):
    plain = ka.generate(model, ROWS, 12).token_ids
    filters = RepetitionPenalty(1.2), NoRepeatNGram(2), MinimumLength(5)
    # Ids that would end the rows too early, and later do.
    free = ka.generate(model, ROWS, 12, Greedy(*filters)).token_ids
    stop_ids = [int(free[0, 2]), int(free[1, 7])]
    found = ka.generate(model, ROWS, 12, Greedy(*filters), stop_ids)
    for i, row in enumerate(ROWS):
        expected = naive_filtered(model, row, 12, stop_ids)
        assert found.token_ids[i, found.valid[i]].tolist() == expected
        assert expected != plain[i].tolist()[: len(expected)]
    assert not found.valid.all()
    assert (found.valid.sum(axis=1) >= 6).all()


def test_eager_equals_compiled(model):
    sampler = Sample(Temperature(0.9), TopK(12), TopP(0.9))
    arrays, run = arguments(ROWS, sampler, return_logprobs=True)
    eager = run(Stepper(model), *map(ops.convert_to_tensor, arrays))
    eager = [ops.convert_to_numpy(output) for output in eager]
    compiled = ka.generate(model, ROWS, 8, sampler, seed=5, return_logprobs=True)
    np.testing.assert_array_equal(eager[0], compiled.token_ids)
    np.testing.assert_array_equal(eager[1], compiled.valid)
    np.testing.assert_allclose(eager[2], compiled.log_probabilities, rtol=0, atol=1e-5)


def test_the_limit_ends_the_loop(model):
    arrays, run = arguments(ROWS, Greedy(), return_logprobs=True)
    arrays[2] = np.int32(3)
    stepper = Stepper(model)
    outputs = compile_function(lambda *args: run(stepper, *args), stepper.variables)(*arrays)
    token_ids, valid, log_probabilities = map(ops.convert_to_numpy, outputs)
    np.testing.assert_array_equal(valid, np.tile(np.arange(8) < 3, (3, 1)))
    np.testing.assert_array_equal(token_ids[:, :3], naive_greedy(model, ROWS, 3))
    assert not token_ids[:, 3:].any()
    assert not log_probabilities[:, 3:].any()


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="JAX hides its loop from Python")
def test_the_loop_ends_when_all_rows_have_stopped(model):
    rows = [[1, 2, 3], [4]]
    stops = [int(i) for i in ka.generate(model, rows, 16).token_ids[:, 2]]
    stepper = Stepper(model)
    sizes = []
    step = stepper.step

    def counting(token_ids, *rest):
        sizes.append(token_ids.shape[1])
        return step(token_ids, *rest)

    stepper.step = counting
    token_ids, valid = pad_left(rows, 4)
    arrays = [keras.ops.convert_to_tensor(x) for x in (token_ids, valid)]
    limit, seed = keras.ops.convert_to_tensor(np.int32(16)), keras.ops.zeros((2,), "int32")
    stops = keras.ops.convert_to_tensor(np.array(stops, "int32"))
    _, live, _ = decode(stepper, *arrays, 16, limit, Greedy(), seed, stops)
    longest = keras.ops.convert_to_numpy(live).sum(axis=1).max()
    assert longest <= 3
    # The prompt in one pass, then one token at a time and none in vain.
    assert sizes == [3] + [1] * longest


class Spy(Greedy):
    """Notes what it is handed."""

    def choose(self, logits, uniform, past):
        self.seen = [(x.shape, keras.backend.standardize_dtype(x.dtype)) for x in (logits, uniform)]
        self.seen += [tuple(x.shape) for x in past]
        return super().choose(logits, uniform, past)


def test_samplers_get_float32_logits_and_the_past(model):
    keras.config.set_dtype_policy("mixed_bfloat16")
    spy = Spy()
    decoded(build(CONFIGS["gpt2"]), ROWS, spy, stop_ids=[29, 30])
    assert spy.seen[:2] == [((3, V), "float32"), ((3,), "float32")]
    assert spy.seen[2:] == [(), (2,), (3, 5 + 8), (3, 5 + 8)]


tensorflow_only = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="SavedModels are written from TensorFlow"
)


@tensorflow_only
def test_a_saved_loop_takes_any_batch_and_length(model, tmp_path):
    import tensorflow as tf

    filters = RepetitionPenalty(1.2), NoRepeatNGram(2), MinimumLength(3)
    filters = *filters, Temperature(0.7), TopK(20), TopP(0.95), MinP(0.01)
    stepper, module = Stepper(model), tf.Module()
    module.weights = [variable.value for variable in stepper.variables]

    def run(token_ids, valid, limit, seed, stop_ids, temperature):
        sampler = Sample(*filters).with_temperature(temperature)
        values = token_ids, valid, 9, limit, sampler, seed, stop_ids
        return dict(zip("iv", decode(stepper, *values)[:2], strict=True))

    specs = [((None, None), "int32"), ((None, None), "bool"), ((), "int32"), ((2,), "int32")]
    specs += [((None,), "int32"), ((), "float32")]
    specs = [tf.TensorSpec(shape, dtype) for shape, dtype in specs]
    module.run = tf.function(run, input_signature=specs, autograph=False)
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))

    changed = [Temperature(0.9) if isinstance(f, Temperature) else f for f in filters]
    samplers = {0.9: Sample(*changed), 0.0: Greedy(*filters)}
    for rows, pads, stop_ids in ((ROWS, 0, [4, 30]), ([[3]], 0, []), (ROWS[:2], 6, [11])):
        for temperature, sampler in samplers.items():
            arrays, eager = arguments(rows, sampler, new=9, pads=pads, stop_ids=stop_ids)
            arrays = [tf.constant(array) for array in arrays]
            found, (token_ids, valid, _) = loaded.run(*arrays, temperature), eager(stepper, *arrays)
            np.testing.assert_array_equal(found["i"].numpy(), token_ids.numpy())
            np.testing.assert_array_equal(found["v"].numpy(), valid.numpy())
