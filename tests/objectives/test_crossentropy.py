import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
from keras import ops

from keras_arch.objectives import TokenCrossentropy
from tests.layers.gradients import gradients
from tests.references import objectives as reference

B, T, V = 2, 3, 5
TARGETS = np.array([[0, 4, 2], [3, 1, 1]], "int32")
WEIGHTS = np.array([[1, 1, 1], [1, 0, 0]], "bool")


def logits(time=T):
    return np.random.default_rng(0).normal(size=(B, time, V), scale=2.0).astype("float32")


def value(loss, targets, scores, weights=None):
    return ops.convert_to_numpy(loss(targets, scores, weights))


def gradient(loss, targets, scores, weights=None):
    return gradients(lambda x: loss(targets, x, weights), [], [scores])[0]


def test_uniform_logits_over_five_tokens():
    # ln 5, whatever the number of pads.
    weights = np.array([[1, 1, 0, 0]], "bool")
    found = value(TokenCrossentropy(), np.zeros((1, 4), "int32"), np.zeros((1, 4, V)), weights)
    np.testing.assert_allclose(found, 1.609438, atol=1e-6)


@pytest.mark.parametrize("weights", [None, WEIGHTS, WEIGHTS * np.float32(0.25)])
@pytest.mark.parametrize("z_loss", [0.0, 0.01])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_equals_the_reference(label_smoothing, z_loss, weights):
    options = {"label_smoothing": label_smoothing, "z_loss": z_loss}
    total, count = reference.crossentropy(TARGETS, logits(), weights, **options)
    found = value(TokenCrossentropy(**options), TARGETS, logits(), weights)
    np.testing.assert_allclose(found, total / count, rtol=1e-5)
    found = value(TokenCrossentropy(reduction="sum", **options), TARGETS, logits(), weights)
    np.testing.assert_allclose(found, total, rtol=1e-5)


@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1, "z_loss": 0.01}])
def test_the_gradient_is_that_of_the_reference(options):
    loss, scores = TokenCrossentropy(**options), logits()
    found = gradient(loss, TARGETS, scores, WEIGHTS)
    expected, step = np.zeros(scores.shape), 1e-4
    for index in np.ndindex(*scores.shape):
        ends = []
        for sign in (1, -1):
            moved = scores.astype("float64")
            moved[index] += sign * step
            ends.append(reference.mean_crossentropy(TARGETS, moved, WEIGHTS, **options))
        expected[index] = (ends[0] - ends[1]) / (2 * step)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1, "z_loss": 0.01}])
@pytest.mark.parametrize("time", [6, 12])
def test_pads_change_neither_loss_nor_gradient(time, options):
    loss, pads = TokenCrossentropy(**options), ((0, 0), (0, time - T))
    padded = logits(12)[:, :time]
    padded[:, :T] = logits()
    arguments = (np.pad(TARGETS, pads), padded, np.pad(WEIGHTS, pads))
    np.testing.assert_allclose(
        value(loss, *arguments), value(loss, TARGETS, logits(), WEIGHTS), rtol=1e-6
    )
    found = gradient(loss, *arguments)
    np.testing.assert_allclose(found[:, :T], gradient(loss, TARGETS, logits(), WEIGHTS), atol=1e-7)
    assert (found[:, T:] == 0).all()


def test_ignored_labels_count_as_weight_zero():
    targets = np.where(WEIGHTS, TARGETS, -1).astype("int32")
    expected = reference.mean_crossentropy(TARGETS, logits(), WEIGHTS)
    np.testing.assert_allclose(value(TokenCrossentropy(), targets, logits()), expected, rtol=1e-6)
    found = gradient(TokenCrossentropy(), targets, logits())
    assert np.isfinite(found).all()
    assert (found[~WEIGHTS] == 0).all()
    # One real label of three, uniform logits.
    found = value(TokenCrossentropy(), np.array([[1, -1, -1]], "int32"), np.zeros((1, 3, V)))
    np.testing.assert_allclose(found, 1.609438, atol=1e-6)


def test_label_smoothing_in_closed_form():
    # V = 4, e = 0.1: 0.9 * 0.340753 + 0.1 * 1.840753... with logits [2, 0, 0, 0] and label 0:
    # ln(e^2 + 3) - 2 = 0.340753 and the mean over the vocabulary ln(e^2 + 3) - 0.5 = 1.840753.
    scores = np.zeros((1, 2, 4), "float32")
    scores[0, 0, 0] = scores[0, 1, 2] = 2.0
    targets, weights = np.array([[0, 3]], "int32"), np.array([[1, 0]], "bool")
    loss = TokenCrossentropy(label_smoothing=0.1)
    np.testing.assert_allclose(value(loss, targets, scores, weights), 0.490753, atol=1e-6)
    found = gradient(loss, targets, scores, weights)
    assert (found[0, 1] == 0).all()
    assert (found[0, 0] != 0).all()


@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1, "z_loss": 0.01}])
@pytest.mark.parametrize("reduction", ["token_mean", "sum"])
def test_a_batch_of_pads_gives_zero(reduction, options):
    loss = TokenCrossentropy(reduction=reduction, **options)
    arguments = (TARGETS, logits(), np.zeros_like(WEIGHTS))
    assert value(loss, *arguments) == 0.0
    assert (gradient(loss, *arguments) == 0).all()


@pytest.mark.parametrize("content", [np.nan, np.inf, 1e30])
@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1, "z_loss": 0.01}])
def test_logits_of_weight_zero_may_hold_anything(options, content):
    loss = TokenCrossentropy(**options)
    dirty = np.where(WEIGHTS[..., None], logits(), content).astype("float32")
    expected = value(loss, TARGETS, logits(), WEIGHTS)
    np.testing.assert_allclose(value(loss, TARGETS, dirty, WEIGHTS), expected, rtol=1e-6)
    found = gradient(loss, TARGETS, dirty, WEIGHTS)
    np.testing.assert_allclose(found, gradient(loss, TARGETS, logits(), WEIGHTS), atol=1e-7)


def test_nan_logits_of_a_real_token_are_not_hidden():
    dirty = logits()
    dirty[0, 0] = np.nan
    assert np.isnan(value(TokenCrossentropy(), TARGETS, dirty, WEIGHTS))


def test_is_float32_for_half_precision_logits():
    # bfloat16 keeps three digits.
    scores = ops.convert_to_tensor(logits(), "bfloat16")
    found = TokenCrossentropy()(TARGETS, scores, WEIGHTS)
    assert keras.backend.standardize_dtype(found.dtype) == "float32"
    rounded = ops.convert_to_numpy(ops.cast(scores, "float32"))
    expected = reference.mean_crossentropy(TARGETS, rounded, WEIGHTS)
    np.testing.assert_allclose(ops.convert_to_numpy(found), expected, rtol=1e-5)


@pytest.mark.parametrize("label", [V, 1000, -2])
def test_names_a_label_out_of_range(label):
    targets = TARGETS.copy()
    targets[0, 1] = label
    with pytest.raises(ValueError, match=rf"\[0, {V}\).*1 others, the first {label}\."):
        TokenCrossentropy()(targets, logits(), WEIGHTS)


def test_a_label_of_weight_zero_may_be_anything():
    targets = np.where(WEIGHTS, TARGETS, 1000).astype("int32")
    expected = value(TokenCrossentropy(), TARGETS, logits(), WEIGHTS)
    assert value(TokenCrossentropy(), targets, logits(), WEIGHTS) == expected


def tiny_model(**options):
    model = keras.Sequential([keras.Input((T,), dtype="int32"), keras.layers.Embedding(V, V)])
    model.compile(keras.optimizers.SGD(1.0), **options)
    return model


@pytest.mark.parametrize("method", ["fit", "evaluate"])
@pytest.mark.parametrize("jit_compile", ["auto", False])
def test_compiled_training_names_a_label_out_of_range(method, jit_compile):
    model = tiny_model(loss=TokenCrossentropy(), jit_compile=jit_compile)
    run = getattr(model, method)
    targets = np.where(WEIGHTS, TARGETS, V).astype("int32")
    run(TARGETS, targets, sample_weight=WEIGHTS, verbose=0)
    targets[0, 1] = 77
    with pytest.raises(Exception, match=rf"labels must be .*\[0, {V}\) or -1.*1\W.*first.*77"):
        run(TARGETS, targets, sample_weight=WEIGHTS, verbose=0)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="the others raise")
def test_xla_on_tensorflow_makes_the_loss_of_such_a_label_nan():
    model = tiny_model(loss=TokenCrossentropy(), jit_compile=True)
    assert np.isnan(model.evaluate(TARGETS, np.full_like(TARGETS, V), verbose=0))


@pytest.mark.skipif(keras.backend.backend() == "torch", reason="one device only on PyTorch")
def test_replicas_show_such_a_label():
    """TensorFlow names it; on JAX the loss becomes NaN, and no device waits for another."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.objectives.replicas_child"],
        cwd=pathlib.Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout.splitlines()[-1] == "replicas 2, before finite, then as promised, after finite"
    )


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="JAX transformations")
def test_names_such_a_label_under_jax_transformations():
    import jax

    def loss(scores, targets):
        return TokenCrossentropy()(targets, scores)

    one = jax.jit(jax.grad(loss))
    rows = jax.jit(jax.vmap(jax.grad(loss)))
    scores, wrong = logits(), TARGETS.copy()
    wrong[1, 2] = V
    np.testing.assert_allclose(one(scores, TARGETS), jax.grad(loss)(scores, TARGETS), atol=1e-6)
    expected = [jax.grad(loss)(s[None], t[None]) for s, t in zip(scores, TARGETS, strict=True)]
    found = rows(scores[:, None], TARGETS[:, None])
    np.testing.assert_allclose(found, np.stack(expected), atol=1e-6)
    with pytest.raises(Exception, match="1 others, the first 5"):
        jax.block_until_ready(one(scores, wrong))
    with pytest.raises(Exception, match="1 others, the first 5"):
        jax.block_until_ready(rows(scores[:, None], wrong[:, None]))


def test_fit_minimises_it():
    model = tiny_model(loss=TokenCrossentropy())
    before = model.get_weights()[0]
    scores = before[TARGETS]
    history = model.fit(TARGETS, TARGETS[:, ::-1], sample_weight=WEIGHTS, verbose=0)
    expected = reference.mean_crossentropy(TARGETS[:, ::-1], scores, WEIGHTS)
    np.testing.assert_allclose(history.history["loss"][0], expected, rtol=1e-5)
    slope = gradient(TokenCrossentropy(), TARGETS[:, ::-1].copy(), scores, WEIGHTS)
    expected = before.copy()
    for index in np.ndindex(B, T):
        expected[TARGETS[index]] -= slope[index]
    np.testing.assert_allclose(model.get_weights()[0], expected, atol=1e-6)


def test_comes_back_from_its_config():
    loss = TokenCrossentropy(0.1, 0.01, "sum", name="given")
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(loss))
    assert again.get_config() == loss.get_config()
    assert again.name == "given"
    assert value(again, TARGETS, logits(), WEIGHTS) == value(loss, TARGETS, logits(), WEIGHTS)


def test_comes_back_with_a_compiled_model(tmp_path):
    model = tiny_model(loss=TokenCrossentropy(label_smoothing=0.1))
    expected = model.evaluate(TARGETS, TARGETS, sample_weight=WEIGHTS, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.loss.get_config() == model.loss.get_config()
    found = loaded.evaluate(TARGETS, TARGETS, sample_weight=WEIGHTS, verbose=0)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"label_smoothing": 1.0}, "label_smoothing=1.0"),
        ({"label_smoothing": -0.1}, "label_smoothing=-0.1"),
        ({"z_loss": -1.0}, "z_loss=-1.0"),
        ({"reduction": "mean"}, "reduction.*'mean'"),
    ],
)
def test_names_the_bad_argument(options, words):
    with pytest.raises(ValueError, match=words):
        TokenCrossentropy(**options)


def test_names_wrong_shapes():
    with pytest.raises(ValueError, match=r"y_true.shape=\(2, 3\), y_pred.shape=\(2, 3\)"):
        TokenCrossentropy()(TARGETS, logits()[..., 0])


@pytest.mark.parametrize(
    ("targets", "logits", "weights"),
    [
        (np.zeros((2, 1), "int32"), np.zeros((2, 3, 5), "float32"), None),
        (np.zeros((2, 3), "int32"), np.zeros((2, 5), "float32"), None),
        (np.zeros((3, 3), "int32"), np.zeros((3, 3, 5), "float32"), np.ones(3)),
        (np.zeros((2, 3), "int32"), np.zeros((2, 3, 5), "float32"), np.ones((2, 1))),
    ],
)
def test_shapes_that_would_broadcast_are_refused(targets, logits, weights):
    with pytest.raises(ValueError, match="must have the shape of y_pred"):
        TokenCrossentropy()(targets, logits, weights)


def test_targets_that_are_no_ids_are_refused():
    with pytest.raises(ValueError, match=r"must be integers in \[0, 5\).*6 others, the first 1\.5"):
        TokenCrossentropy()(np.full((2, 3), 1.5, "float32"), np.zeros((2, 3, 5), "float32"))
