import keras
import numpy as np
import pytest
from keras import ops

from keras_arch import layers
from keras_arch.layers.recurrent_weights import (
    from_cudnn,
    from_keras,
    from_torch,
    to_keras,
    to_torch,
)
from tests.layers import rows

WIDTH = 5
OURS = {"lstm": layers.LSTM, "gru": layers.GRU, "rnn": layers.ElmanRNN}
KERAS = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU, "rnn": keras.layers.SimpleRNN}
X = rows.inputs()
VALID = np.ones(X.shape[:2], "bool")


def built(kind, weights=None):
    layer = OURS[kind](WIDTH)
    layer.build(X.shape)
    if weights is None:
        return rows.randomize(layer)
    layer.set_weights(weights)
    return layer


def keras_layer(kind):
    layer = KERAS[kind](WIDTH, return_sequences=True)
    layer.build(X.shape)
    return rows.randomize(layer)


def torch_layer(kind):
    torch = pytest.importorskip("torch")
    layer = getattr(torch.nn, kind.upper())(X.shape[-1], WIDTH, batch_first=True)
    random = np.random.default_rng(1)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.copy_(torch.tensor(random.normal(scale=0.5, size=weight.shape)))
    return layer


def torch_output(layer):
    import torch

    with torch.no_grad():
        return layer(torch.tensor(X))[0].numpy()


def torch_arrays(layer):
    return [weight.detach().numpy() for weight in layer.parameters()]


def output(layer, *arguments):
    tensors = [ops.convert_to_tensor(array) for array in (X, *arguments)]
    return ops.convert_to_numpy(layer(*tensors))


@pytest.mark.parametrize("kind", OURS)
def test_keras_weights_give_its_outputs(kind):
    layer = keras_layer(kind)
    ours = built(kind, from_keras(kind, layer.get_weights()))
    np.testing.assert_allclose(output(ours, VALID), output(layer), atol=1e-5)


@pytest.mark.parametrize("kind", OURS)
def test_weights_for_keras_give_our_outputs(kind):
    ours, layer = built(kind), keras_layer(kind)
    layer.set_weights(to_keras(kind, ours.get_weights()))
    np.testing.assert_allclose(output(layer), output(ours, VALID), atol=1e-5)


@pytest.mark.parametrize("kind", OURS)
def test_torch_weights_give_its_outputs(kind):
    layer = torch_layer(kind)
    ours = built(kind, from_torch(kind, torch_arrays(layer)))
    np.testing.assert_allclose(output(ours, VALID), torch_output(layer), atol=1e-5)


@pytest.mark.parametrize("kind", OURS)
def test_weights_for_torch_give_our_outputs(kind):
    ours, layer = built(kind), torch_layer(kind)
    arrays = to_torch(kind, ours.get_weights())
    import torch

    with torch.no_grad():
        for weight, array in zip(layer.parameters(), arrays, strict=True):
            weight.copy_(torch.tensor(array))
    np.testing.assert_allclose(torch_output(layer), output(ours, VALID), atol=1e-5)


@pytest.mark.parametrize("kind", OURS)
@pytest.mark.parametrize(("there", "back"), [(to_keras, from_keras), (to_torch, from_torch)])
def test_there_and_back_changes_nothing(kind, there, back):
    weights = built(kind).get_weights()
    for found, given in zip(back(kind, there(kind, weights)), weights, strict=True):
        np.testing.assert_array_equal(found, given)


def test_names_what_is_wrong():
    weights = built("lstm").get_weights()
    with pytest.raises(ValueError, match=r"one of \['lstm', 'gru', 'rnn'\]; received kind='mlp'"):
        from_keras("mlp", weights)
    with pytest.raises(ValueError, match="the 4 arrays of one 'lstm' layer; received shapes"):
        from_torch("lstm", weights)
    with pytest.raises(ValueError, match=r"one of \['lstm', 'gru'\]; received kind='rnn'"):
        from_cudnn("rnn", weights)
    with pytest.raises(ValueError, match="with two biases; received the shapes"):
        from_cudnn("lstm", keras_layer("lstm").get_weights())
    for convert in (from_keras, to_keras):
        with pytest.raises(ValueError, match="those of one 'rnn' layer; received the shapes"):
            convert("rnn", weights)
