import keras
import numpy as np
import pytest

import keras_arch as ka
from keras_arch.backend import draws_by_hash
from tests.layers.gradients import gradients
from tests.references import noise

X = np.random.default_rng(0).normal(size=(64, 32, 16)).astype("float32") + 5.0


def run(layer, x=X, training=True):
    return keras.ops.convert_to_numpy(layer(x, training=training))


def test_a_share_is_dropped_and_the_others_are_scaled_up():
    y = run(ka.layers.Dropout(0.3, seed=1))
    kept = y != 0
    np.testing.assert_allclose(y[kept], X[kept] / 0.7, rtol=1e-6)
    # The share of n draws has the deviation sqrt(rate (1 - rate) / n).
    assert abs(kept.mean() - 0.7) < 5 * (0.21 / X.size) ** 0.5


@pytest.mark.skipif(keras.backend.backend() == "torch", reason="PyTorch has its own generator")
def test_which_are_dropped_follows_from_the_seed_and_the_call():
    assert draws_by_hash()
    layer = ka.layers.Dropout(0.3, seed=11)
    for step in range(2):
        bits = np.array([noise.bits((11, step), place) for place in range(X[:2].size)])
        dropped = (bits < round(0.3 * 2**32)).reshape(X[:2].shape)
        np.testing.assert_array_equal(run(layer, X[:2]) == 0, dropped)


def test_calls_and_layers_drop_others():
    layer, other = ka.layers.Dropout(0.5), ka.layers.Dropout(0.5)
    masks = [run(each) != 0 for each in (layer, layer, other)]
    for first, second in ((0, 1), (0, 2), (1, 2)):
        assert abs((masks[first] == masks[second]).mean() - 0.5) < 5 * 0.5 / X.size**0.5


@pytest.mark.parametrize(("rate", "training"), [(0.0, True), (0.5, False)])
def test_nothing_is_dropped_without_a_rate_or_in_use(rate, training):
    np.testing.assert_array_equal(run(ka.layers.Dropout(rate), training=training), X)


def test_noise_is_shared_over_an_axis():
    kept = run(ka.layers.Dropout(0.5, noise_shape=(None, 1, None))) != 0
    np.testing.assert_array_equal(kept, np.broadcast_to(kept[:, :1], kept.shape))
    assert abs(kept[:, 0].mean() - 0.5) < 5 * 0.5 / kept[:, 0].size ** 0.5


def test_the_gradient_is_the_mask():
    x = X[:4]
    layer = ka.layers.Dropout(0.4, seed=3)
    again = ka.layers.Dropout(0.4, seed=3)
    if keras.backend.backend() == "torch":
        import torch

        torch.manual_seed(0)
    kept = run(layer, x) != 0
    if keras.backend.backend() == "torch":
        torch.manual_seed(0)
    (found,) = gradients(lambda x: keras.ops.sum(again(x, training=True)), [], [x])
    np.testing.assert_allclose(found, kept / np.float32(0.6), rtol=1e-6)


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_a_model_of_open_shape_trains_and_comes_back_from_its_file(policy, tmp_path):
    inputs = keras.Input((None, 16))
    layer = ka.layers.Dropout(0.5, seed=4, dtype=policy)
    model = keras.Model(inputs, keras.layers.Dense(1)(layer(inputs)))
    model.compile("sgd", "mse")
    losses = [model.train_on_batch(X[:8, :n], X[:8, :n, :1]) for n in (4, 6)]
    assert np.isfinite(losses).all()
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    (copy,) = (each for each in loaded.layers if isinstance(each, ka.layers.Dropout))
    assert copy.get_config() == layer.get_config()
