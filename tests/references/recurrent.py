"""Recurrent networks by the textbook, one row and one token at a time. Float64."""

import numpy as np

from tests.references.norms import layer_norm

EPSILON = 1e-5


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def lstm(projected, product, state, weights):
    """`C_t = f * C_{t-1} + i * c~`, `h_t = o * tanh(C_t)`. Gers et al. 2000.

    Args:
        projected: `x W + b`, `[4 D]`: the blocks of forget, input, candidate, output.
        product: `h U`, `[4 D]`.
        state: (h, c).
        weights: With `cell_scale` and `cell_offset`, tanh sees the normed cell: Ba et al. 2016,
            supplementary material.
    """
    f, i, c, o = np.split(projected + product, 4)
    cell = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(c)
    seen = cell
    if "cell_scale" in weights:
        seen = layer_norm(cell, weights["cell_scale"], weights["cell_offset"], EPSILON)
    return sigmoid(o) * np.tanh(seen), cell


def gru(projected, product, state, weights):
    """`h_t = z h_{t-1} + (1 - z) h~`. Cho et al. 2014, the reset gate after the product."""
    (xz, xr, xh), (hz, hr, hh) = np.split(projected, 3), np.split(product, 3)
    z, r = sigmoid(xz + hz), sigmoid(xr + hr)
    candidate = np.tanh(xh + r * (hh + weights["recurrent_bias"]))
    return (z * state[0] + (1 - z) * candidate,)


def elman(projected, product, state, weights):
    """`h_t = tanh(x W + h U + b)`. Elman 1990."""
    return (np.tanh(projected + product),)


def run(cell, x, valid, states, weights, reverse=False):
    """Runs a cell over the real tokens of each row.

    Args:
        cell: A function above.
        x: `[B, T, D_in]`.
        valid: `[B, T]`.
        states: Tuple of `[B, D]`.
        weights: Dict with `kernel`, `recurrent_kernel`, `bias`; with `input_scale` and
            `recurrent_scale` both products are normed: Ba et al. 2016, supplementary material.
        reverse: Whether the last token comes first.

    Returns:
        Outputs `[B, T, D]`, at a pad the state's h, and the states after the last step.
    """
    outputs = np.zeros((*x.shape[:2], states[0].shape[-1]))
    last = [np.array(state, "float64") for state in states]
    for row in range(len(x)):
        state = tuple(s[row] for s in last)
        for t in range(x.shape[1])[:: -1 if reverse else 1]:
            if valid[row, t]:
                projected = x[row, t] @ weights["kernel"]
                product = state[0] @ weights["recurrent_kernel"]
                if "recurrent_scale" in weights:
                    projected = layer_norm(projected, weights["input_scale"], 0.0, EPSILON)
                    product = layer_norm(product, weights["recurrent_scale"], 0.0, EPSILON)
                state = cell(projected + weights["bias"], product, state, weights)
            outputs[row, t] = state[0]
        for s, value in zip(last, state, strict=True):
            s[row] = value
    return outputs, tuple(last)
