"""Activations and feed-forward networks. Float64."""

import math

import numpy as np


def relu(x):
    """`max(x, 0)`."""
    return np.maximum(x, 0.0)


def gelu(x):
    """`x * P(N(0, 1) <= x)`, exact. Hendrycks & Gimpel 2016."""
    return np.vectorize(lambda v: v * 0.5 * (1 + math.erf(v / math.sqrt(2))))(x)


def gelu_tanh(x):
    """The same paper's approximation by tanh, as GPT-2 has it."""
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def silu(x):
    """`x * sigmoid(x)`."""
    return x / (1 + np.exp(-x))


def feedforward(x, up, down, activation, up_bias=0.0, down_bias=0.0):
    """`activation(x up + b) down + c`. Vaswani et al. 2017, section 3.3."""
    return activation(x @ up + up_bias) @ down + down_bias


def gated_feedforward(
    x, gate, value, down, activation, gate_bias=0.0, value_bias=0.0, down_bias=0.0
):
    """`(activation(x gate + b) * (x value + c)) down + d`. Shazeer 2020, section 2."""
    return (activation(x @ gate + gate_bias) * (x @ value + value_bias)) @ down + down_bias


def adapter(h, norm, down, up, activation, down_bias=0.0, up_bias=0.0):
    """`h + activation(norm(h) down + b) up + c`. Houlsby et al. 2019, section 2.1."""
    return h + feedforward(norm(h), down, up, activation, down_bias, up_bias)
