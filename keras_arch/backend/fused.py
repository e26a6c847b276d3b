"""Recurrent layers that a backend has as one kernel."""

import keras

from keras_arch.backend.tensors import concrete

#: Which of our blocks of columns stands at each place of PyTorch's.
TORCH_ORDER = {"LSTM": (1, 0, 2, 3), "GRU": (1, 0, 2), "RNN": (0,)}


def fused_recurrence(kind, x, valid, state, matrices, biases, reverse):
    """Returns what a recurrent layer's loop returns, made by PyTorch's own kernel, or None.

    None on the other backends; where a program is traced; where there is a pad; for one step, which
    is no loop; and in half precision, in which the kernel's state is too.

    Args:
        kind: "LSTM", "GRU" or "RNN", as in `torch.nn`.
        x: float `[B, T, D_in]`.
        valid: bool `[B, T]`.
        state: List of float `[B, D]`.
        matrices: The input's and the state's, float `[D_in, gates * D]` and `[D, gates * D]`.
        biases: Two, float `[gates * D]`.
        reverse: Whether the last token comes first.

    Returns:
        The last state, a list, and the outputs `[B, T, D]`.
    """
    if keras.backend.backend() != "torch" or x.shape[1] < 2 or str(x.dtype) != "torch.float32":
        return None
    every = concrete(valid.all())
    if every is None or not every:
        return None
    return _torch(kind, x, state, matrices, biases, reverse)


def _torch(kind, x, state, matrices, biases, reverse):
    import torch

    order, width = TORCH_ORDER[kind], state[0].shape[-1]
    weights = [_blocks(matrix, order).T.contiguous() for matrix in matrices]
    weights += [_blocks(bias, order) for bias in biases]
    # Without memory of its own: the weights are handed over at the call.
    module = getattr(torch.nn, kind)(x.shape[-1], width, batch_first=True, device="meta")
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    state = tuple(value[None] for value in state)
    sequence, last = torch.func.functional_call(
        module,
        dict(zip(names, weights, strict=True)),
        (x.flip(1) if reverse else x, state if len(state) > 1 else state[0]),
    )
    last = last if isinstance(last, tuple) else (last,)
    return [value[0] for value in last], sequence.flip(1) if reverse else sequence


def _blocks(array, order):
    import torch

    blocks = array.chunk(len(order), dim=-1)
    return torch.cat([blocks[i] for i in order], dim=-1)
