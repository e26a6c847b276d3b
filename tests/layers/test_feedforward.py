import keras
import numpy as np
import pytest

from keras_arch.layers import FeedForward, GatedFeedForward
from tests.layers import rows
from tests.references import feedforward as reference

ACTIVATIONS = {
    "relu": reference.relu,
    "gelu": reference.gelu,
    "gelu_tanh": reference.gelu_tanh,
    "silu": reference.silu,
}
HIDDEN = 12


def built(layer):
    layer.build((None, None, rows.WIDTH))
    return rows.randomize(layer)


@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_equals_the_reference(activation, use_bias):
    layer = built(FeedForward(HIDDEN, activation, use_bias))
    weights = layer.get_weights()
    up, down = (w for w in weights if w.ndim == 2)
    biases = [w for w in weights if w.ndim == 1]
    assert len(biases) == 2 * use_bias
    x = rows.inputs()
    expected = reference.feedforward(x, up, down, ACTIVATIONS[activation], *biases)
    np.testing.assert_allclose(rows.run(layer, x), expected, atol=1e-5)


@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("activation", ["silu", "gelu"])
def test_gated_equals_the_reference(activation, use_bias):
    layer = built(GatedFeedForward(HIDDEN, activation, use_bias))
    weights = layer.get_weights()
    up, down = (w for w in weights if w.ndim == 2)
    biases = [w for w in weights if w.ndim == 1]
    if use_bias:
        biases = [*np.split(biases[0], 2), biases[1]]
    gate, value = np.split(up, 2, axis=1)
    x = rows.inputs()
    expected = reference.gated_feedforward(x, gate, value, down, ACTIVATIONS[activation], *biases)
    np.testing.assert_allclose(rows.run(layer, x), expected, atol=1e-5)


@pytest.mark.parametrize("kind", [FeedForward, GatedFeedForward])
def test_dropout_drops_hidden_units_in_training_only(kind):
    plain, dropping = built(kind(HIDDEN)), built(kind(HIDDEN, dropout=0.5))
    x = rows.inputs()
    expected = rows.run(plain, x)
    np.testing.assert_array_equal(rows.run(dropping, x), expected)
    assert abs(rows.run(dropping, x, training=True) - expected).max() > 1e-2


@pytest.mark.parametrize("kind", [FeedForward, GatedFeedForward])
def test_initializers_follow_the_arguments(kind):
    layer = kind(HIDDEN, kernel_initializer="ones", output_initializer="zeros")
    layer.build((None, None, rows.WIDTH))
    assert (layer.up.get_weights()[0] == 1).all()
    assert (layer.down.get_weights()[0] == 0).all()


def test_equal_matrices_start_from_different_numbers():
    layer = FeedForward(rows.WIDTH, kernel_initializer=keras.initializers.RandomNormal())
    layer.build((None, None, rows.WIDTH))
    up, down = layer.up.get_weights()[0], layer.down.get_weights()[0]
    assert up.shape == down.shape
    assert abs(up - down).min() > 0


@pytest.mark.parametrize("kind", [FeedForward, GatedFeedForward])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"hidden_width": 0}, "hidden_width=0"),
        ({"hidden_width": True}, "hidden_width=True"),
        ({"hidden_width": 8, "dropout": 1.5}, "dropout=1.5"),
    ],
)
def test_names_the_bad_argument(kind, options, words):
    with pytest.raises(ValueError, match=words):
        kind(**options)
