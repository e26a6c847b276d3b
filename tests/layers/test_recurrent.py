import keras
import numpy as np
import pytest
from keras import ops

import keras_arch as ka
from keras_arch import layers
from tests.contracts.tiny import V, naive_greedy, stepped_logits
from tests.layers import rows
from tests.layers.gradients import gradients
from tests.references import recurrent as reference

WIDTH = 5
KINDS = {
    "LSTM": (layers.LSTM, reference.lstm),
    "GRU": (layers.GRU, reference.gru),
    "ElmanRNN": (layers.ElmanRNN, reference.elman),
}
#: The rows all layers are tried on, and one of pads alone.
VALID = np.concatenate([rows.VALID, np.zeros((1, rows.TIME), "bool")])
#: Without a pad, where a backend may have a kernel for the whole layer.
FULL = np.ones_like(VALID)
X = rows.normal(len(VALID), rows.TIME, rows.WIDTH)


def built(kind, **options):
    layer = KINDS[kind][0](WIDTH, **options)
    layer.build(X.shape)
    return rows.randomize(layer)


def weights_of(layer):
    return {
        w.name: rows.to_numpy(w).astype("float64") for w in layer.weights if "seed" not in w.name
    }


def initial(layer, seed=5):
    return [rows.normal(len(X), WIDTH, seed=seed + i) for i in range(len(layer.state_names))]


def expected(kind, layer, x=X, valid=VALID, states=None):
    states = [np.zeros((len(x), WIDTH))] * len(layer.state_names) if states is None else states
    return reference.run(
        KINDS[kind][1], x.astype("float64"), valid, states, weights_of(layer), layer.reverse
    )


def run(layer, x=X, valid=VALID, states=None):
    tensors = None if states is None else [ops.convert_to_tensor(s) for s in states]
    outputs = layer(ops.convert_to_tensor(x), ops.convert_to_tensor(valid), tensors)
    return [rows.to_numpy(y) for y in (outputs if isinstance(outputs, tuple) else [outputs])]


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_reference(kind, reverse, normalise):
    layer = built(kind, reverse=reverse, normalise=normalise, return_state=True)
    for valid, states in ((VALID, None), (FULL, None), (FULL, initial(layer))):
        found = run(layer, valid=valid, states=states)
        sequence, last = expected(kind, layer, valid=valid, states=states)
        for got, want in zip(found, [sequence, *last], strict=True):
            np.testing.assert_allclose(got, want, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_of_pads_ends_with_the_state_it_began_with(kind):
    layer = built(kind, return_state=True)
    states = initial(layer)
    for last, before in zip(run(layer, states=states)[1:], states, strict=True):
        np.testing.assert_array_equal(last[-1], before[-1])


@pytest.mark.parametrize("kind", KINDS)
def test_what_pads_hold_does_not_matter(kind):
    layer = built(kind)
    spoilt = np.where(VALID[..., None], X, np.nan)
    np.testing.assert_array_equal(run(layer, spoilt)[0], run(layer)[0])

    def loss(x):
        return ops.sum(ops.square(layer(x, ops.convert_to_tensor(VALID))))

    found = gradients(loss, layer.trainable_variables, [spoilt])
    wanted = gradients(loss, layer.trainable_variables, [X])
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-6)


@pytest.mark.parametrize(("normalise", "valid"), [(False, VALID), (False, FULL), (True, VALID)])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_equal_differences_of_the_reference(kind, normalise, valid):
    layer = built(kind, normalise=normalise)
    slope = rows.normal(len(X), rows.TIME, WIDTH, seed=7)
    states = initial(layer)

    def loss(x, *states):
        y = layer(x, ops.convert_to_tensor(valid), list(states))
        return ops.sum(y * ops.convert_to_tensor(slope))

    found = gradients(loss, layer.trainable_variables, [X, *states])
    names = [variable.name for variable in layer.trainable_variables]
    weights, x = weights_of(layer), X.astype("float64")
    states = [np.array(state, "float64") for state in states]

    def value():
        return (reference.run(KINDS[kind][1], x, valid, states, weights)[0] * slope).sum()

    values = [*(weights[name] for name in names), x, *states]
    for name, gradient, array in zip([*names, "x", "h", "c"], found, values, strict=False):
        wanted = np.zeros(array.shape)
        # A few of the numbers: each costs two runs of the reference.
        for index in np.random.default_rng(0).permutation(list(np.ndindex(*array.shape)))[:12]:
            kept, ends = array[tuple(index)], []
            for sign in (1e-5, -1e-5):
                array[tuple(index)] = kept + sign
                ends.append(value())
            array[tuple(index)] = kept
            wanted[tuple(index)] = (ends[0] - ends[1]) / 2e-5
            got = gradient[tuple(index)]
            np.testing.assert_allclose(
                got, wanted[tuple(index)], rtol=1e-3, atol=1e-4, err_msg=name
            )


@pytest.mark.parametrize("kind", KINDS)
def test_two_segments_equal_one(kind):
    layer = built(kind, return_state=True)
    whole = run(layer)
    first, *state = run(layer, X[:, :3], VALID[:, :3])
    second, *state = run(layer, X[:, 3:], VALID[:, 3:], state)
    np.testing.assert_allclose(np.concatenate([first, second], 1), whole[0], atol=1e-6)
    for got, want in zip(state, whole[1:], strict=True):
        np.testing.assert_allclose(got, want, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_steps_equal_the_whole(kind):
    layer = built(kind, normalise=True)
    for chunks in rows.CHUNKS:
        found = np.concatenate(rows.step_through(layer, chunks, X, VALID), axis=1)
        np.testing.assert_allclose(found, run(layer)[0], atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_of_the_cell_equals_the_layer(kind):
    layer = built(kind, normalise=True, recurrent_dropout=0.5)
    state = layer.begin(len(X))
    for t in range(rows.TIME):
        x, valid = ops.convert_to_tensor(X[:, t]), ops.convert_to_tensor(VALID[:, t])
        state = layer.advance(layer.project(x), state, valid)
        np.testing.assert_allclose(rows.to_numpy(state["h"]), run(layer)[0][:, t], atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_drops_the_same_units_at_all_steps(kind):
    # With x = 0, h is a function of the units of h that stay; those dropped have no gradient.
    layer = KINDS[kind][0](64, recurrent_dropout=0.5, kernel_initializer="zeros")
    x, valid = np.zeros((1, 4, 3), "float32"), np.ones((1, 4), "bool")
    layer.build(x.shape)
    state = [ops.ones((1, 64))] * len(layer.state_names)

    def loss():
        return ops.sum(layer(x, valid, state, training=True)[:, -1])

    (found,) = gradients(loss, [layer.recurrent_kernel], [])
    dropped = ~found.any(axis=1)
    assert 12 < dropped.sum() < 52  # of 64, half


def test_the_dropped_state_is_scaled_by_what_stays():
    layer = layers.ElmanRNN(
        2000, activation="linear", recurrent_dropout=0.25, recurrent_initializer="identity"
    )
    valid = np.ones((1, 1), "bool")
    layer.build((1, 1, 1))
    y = layer(np.zeros((1, 1, 1), "float32"), valid, [ops.ones((1, 2000))], training=True)
    y = rows.to_numpy(y)[0, 0]
    assert set(np.round(y, 5)) == {np.float32(0.0), np.round(np.float32(4 / 3), 5)}
    assert abs((y == 0).mean() - 0.25) < 0.05  # 5 standard deviations


def test_weights_start_as_they_should():
    layer = layers.LSTM(WIDTH)
    layer.build(X.shape)
    bias, matrix = rows.to_numpy(layer.bias), rows.to_numpy(layer.recurrent_kernel)
    np.testing.assert_array_equal(bias, [1.0] * WIDTH + [0.0] * 3 * WIDTH)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(WIDTH), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_half_precision_adds_up_in_float32(kind):
    whole = built(kind, return_state=True)
    layer = KINDS[kind][0](WIDTH, return_state=True, dtype="mixed_bfloat16")
    layer.build(X.shape)
    layer.set_weights(whole.get_weights())
    outputs = layer(ops.convert_to_tensor(X), ops.convert_to_tensor(VALID))
    types = [keras.backend.standardize_dtype(y.dtype) for y in outputs]
    assert types == ["bfloat16", "bfloat16", "float32"][: len(types)]
    for got, want in zip(outputs, run(whole), strict=True):
        np.testing.assert_allclose(rows.to_numpy(got), want, atol=0.05)


def language_model(kind, **options):
    inputs = {
        "token_ids": keras.Input((None,), dtype="int32", name="token_ids"),
        "valid": keras.Input((None,), dtype="bool", name="valid"),
    }
    embedding = layers.TokenEmbedding(V, WIDTH, name="tokens")
    x = embedding(inputs["token_ids"])
    for i in range(2):
        x = KINDS[kind][0](WIDTH, name=f"layer_{i}", **options)(x, inputs["valid"])
    model = keras.Model(inputs, embedding(x, reverse=True))
    return rows.randomize(model)


def test_a_language_model_decodes():
    model = language_model("LSTM")
    token_ids = np.random.default_rng(0).integers(0, V, (4, 6)).astype("int32")
    full = rows.to_numpy(model({"token_ids": token_ids, "valid": rows.VALID}))
    for chunks in rows.CHUNKS:
        stepped = stepped_logits(model, token_ids, rows.VALID, chunks)
        np.testing.assert_allclose(stepped, full, atol=1e-5)


def test_a_language_model_generates(tmp_path):
    model = language_model("LSTM")
    model.save(tmp_path / "model.keras")
    prompts = [[1, 2, 3], [4]]
    wanted = naive_greedy(model, prompts, 5)
    for again in (model, keras.saving.load_model(tmp_path / "model.keras")):
        found = ka.generate(again, prompts, max_new_tokens=5)
        np.testing.assert_array_equal(found.token_ids, wanted)


def test_a_layer_in_reverse_cannot_decode():
    model = language_model("GRU", reverse=True)
    with pytest.raises(ValueError, match=r"layer_0 cannot decode step by step; .*reverse=True"):
        ka.generation.Stepper(model).start(1, 4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0}, "width must be a positive integer; received width=0"),
        ({"width": 2, "recurrent_dropout": 1.0}, "received recurrent_dropout=1.0"),
    ],
)
def test_names_the_bad_argument(kind, options, message):
    with pytest.raises(ValueError, match=message):
        KINDS[kind][0](**options)


def test_names_the_bad_state():
    layer = built("LSTM")
    for state in ([ops.zeros((5, WIDTH))], [ops.zeros((5, 2))] * 2, ops.zeros((5, WIDTH))):
        with pytest.raises(ValueError, match=r"list of 2 tensors \[B, 5\], \['h', 'c'\]"):
            layer(X, VALID, state)
