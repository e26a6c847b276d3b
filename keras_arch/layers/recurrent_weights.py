"""Weights of recurrent layers from and to Keras's own and PyTorch's, as lists of numpy arrays.

```
lstm.set_weights(from_keras("lstm", keras_lstm.get_weights()))
lstm.set_weights(from_torch("lstm", [w.numpy() for w in torch_lstm.state_dict().values()]))
```

The kinds are "lstm", "gru" and "rnn": `LSTM`, `GRU` and `ElmanRNN` without `normalise` are the same
functions as `keras.layers.LSTM`, `GRU` (with its default `reset_after=True`) and `SimpleRNN`, and
as one layer and direction of `torch.nn.LSTM`, `GRU` and `RNN`. Those libraries keep a second bias
that adds nothing but for the candidate of a GRU: it is added to the first, and given back as zeros.
"""

import numpy as np

from keras_arch.backend import fused

#: Kind -> which of our blocks of columns stands at each place of Keras's, and of PyTorch's.
KERAS_ORDER = {"lstm": (1, 0, 2, 3), "gru": (0, 1, 2), "rnn": (0,)}
TORCH_ORDER = {kind.lower(): order for kind, order in fused.TORCH_ORDER.items()}


def from_keras(kind, weights):
    """Returns our weights for those of a Keras layer: kernel, recurrent kernel, bias.

    Raises:
        ValueError: If `kind` is not known or the arrays are not those of such a layer.
    """
    kernel, recurrent, bias = _arrays(kind, weights, 3, KERAS_ORDER)
    biases = [bias, np.zeros_like(bias)] if bias.ndim == 1 else list(bias)
    return _ours(kind, kernel, recurrent, *biases, KERAS_ORDER[kind])


def to_keras(kind, weights):
    """Returns a Keras layer's weights for ours; see `from_keras`."""
    kernel, recurrent, bias, more = _theirs(kind, weights, KERAS_ORDER)
    return [kernel, recurrent, np.stack([bias, more]) if kind == "gru" else bias]


def from_cudnn(kind, weights):
    """Returns our weights for those of Keras 2's `CuDNNLSTM` or `CuDNNGRU`: "lstm" or "gru".

    Kernel, recurrent kernel and both biases in one array, as checkpoints of that time hold them:
    each block of a matrix is transposed where it lies.

    Raises:
        ValueError: As `from_keras`.
    """
    orders = {kind: order for kind, order in KERAS_ORDER.items() if kind != "rnn"}
    kernel, recurrent, bias = _arrays(kind, weights, 3, orders)
    if bias.size != 2 * kernel.shape[-1]:
        raise ValueError(
            f"weights must be those of one CuDNN {kind!r} layer, with two biases; received the "
            f"shapes {[array.shape for array in (kernel, recurrent, bias)]}."
        )
    blocks = len(orders[kind])
    kernel, recurrent = (
        np.hstack([x.ravel().reshape(x.shape, order="F") for x in np.hsplit(matrix, blocks)])
        for matrix in (kernel, recurrent)
    )
    return _ours(kind, kernel, recurrent, *np.split(bias.ravel(), 2), orders[kind])


def from_torch(kind, weights):
    """Returns our weights for PyTorch's: weight_ih, weight_hh, bias_ih, bias_hh.

    Raises:
        ValueError: As `from_keras`.
    """
    kernel, recurrent, *biases = _arrays(kind, weights, 4, TORCH_ORDER)
    return _ours(kind, kernel.T, recurrent.T, *biases, TORCH_ORDER[kind])


def to_torch(kind, weights):
    """Returns PyTorch's weights for ours; see `from_torch`."""
    kernel, recurrent, bias, more = _theirs(kind, weights, TORCH_ORDER)
    return [np.ascontiguousarray(kernel.T), np.ascontiguousarray(recurrent.T), bias, more]


def _ours(kind, kernel, recurrent, bias, more, order):
    _check_shapes(kind, kernel, recurrent, bias, more)
    order = np.argsort(order)
    kernel, recurrent, bias, more = (_move(x, order) for x in (kernel, recurrent, bias, more))
    if kind != "gru":
        return [kernel, recurrent, bias + more]
    # The last block's second bias stands inside the reset gate.
    begin = 2 * len(recurrent)
    bias[:begin] += more[:begin]
    return [kernel, recurrent, bias, more[begin:]]


def _theirs(kind, weights, orders):
    kernel, recurrent, bias, *candidate = _arrays(kind, weights, 4 if kind == "gru" else 3, orders)
    more = np.zeros_like(bias)
    if kind == "gru":
        more[2 * len(recurrent) :] = candidate[0]
    _check_shapes(kind, kernel, recurrent, bias, more)
    return [_move(x, orders[kind]) for x in (kernel, recurrent, bias, more)]


def _move(array, order):
    """Returns a copy whose blocks of columns stand in another order."""
    blocks = np.split(array, len(order), axis=-1)
    return np.concatenate([blocks[i] for i in order], axis=-1)


def _arrays(kind, weights, count, orders):
    if kind not in orders:
        raise ValueError(f"kind must be one of {list(orders)}; received kind={kind!r}.")
    weights = [np.asarray(weight) for weight in weights]
    if len(weights) != count:
        raise ValueError(
            f"weights must be the {count} arrays of one {kind!r} layer; received shapes "
            f"{[weight.shape for weight in weights]}."
        )
    return weights


def _check_shapes(kind, kernel, recurrent, bias, more):
    width, columns = recurrent.shape
    wanted = [(len(kernel), columns), (width, len(KERAS_ORDER[kind]) * width), *[(columns,)] * 2]
    found = [array.shape for array in (kernel, recurrent, bias, more)]
    if found != wanted:
        raise ValueError(
            f"weights must be those of one {kind!r} layer; received the shapes {found} of the "
            f"input's matrix, the state's matrix and two biases, where {wanted} go together."
        )
