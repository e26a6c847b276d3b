"""Recurrent decoders with attention, one row and one token at a time. Float64."""

import numpy as np


def run(step, x, valid, memory, memory_valid, state, width):
    """Runs a step over the real tokens of each row.

    Args:
        step: Function of x `[D]`, the row's real memory vectors `[n, M]` and a state; returns the
            output `[width]`, the weights `[n]` and the new state.
        x: `[B, T, D]`.
        valid: `[B, T]`.
        memory: `[B, S, M]`.
        memory_valid: `[B, S]`.
        state: Function of the row's number and n that returns its first state.
        width: Of the output.

    Returns:
        Outputs `[B, T, width]` and weights `[B, T, S]`; at pads, zeros.
    """
    outputs = np.zeros((*x.shape[:2], width))
    weights = np.zeros((*x.shape[:2], memory.shape[1]))
    for b in range(len(x)):
        real = np.flatnonzero(memory_valid[b])
        now = state(b, len(real))
        for t in np.flatnonzero(valid[b]):
            outputs[b, t], weights[b, t, real], now = step(x[b, t], memory[b, real], now)
    return outputs, weights


def mix(weights, vectors, width):
    """The context; zeros if there is nothing to attend to."""
    return weights @ vectors if len(vectors) else np.zeros(width)


def bahdanau(x, vectors, state, parts):
    """`c_t = attention(h_{t-1})`, then the cells (Bahdanau et al. 2015, appendix A.2.2).

    Args:
        x: `[D]`.
        vectors: `[n, M]`.
        state: `(cell states, coverage [n])`.
        parts: Dict of `weigh(x, h, vectors, coverage)`, `cells(x, fed, states) -> states`,
            `output(context, h)`.
    """
    states, coverage = state
    weights = parts["weigh"](x, states[-1][0], vectors, coverage)
    context = mix(weights, vectors, vectors.shape[1])
    states = parts["cells"](x, context, states)
    return parts["output"](context, states[-1][0]), weights, (states, coverage + weights)


def luong(x, vectors, state, parts, input_feeding):
    """The cells, then `c_t = attention(h_t)` (Luong et al. 2015, sections 3 and 3.3).

    Arguments as in `bahdanau`, with `state` `(cell states, coverage, output before)`.
    """
    states, coverage, fed = state
    states = parts["cells"](x, fed if input_feeding else None, states)
    weights = parts["weigh"](x, states[-1][0], vectors, coverage)
    output = parts["output"](mix(weights, vectors, vectors.shape[1]), states[-1][0])
    return output, weights, (states, coverage + weights, output)
