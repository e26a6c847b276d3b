"""Norms over the last axis. Float64."""

import numpy as np


def layer_norm(x, gamma, beta, epsilon):
    """`(x - mean) / sqrt(variance + epsilon) * gamma + beta`. Ba et al. 2016, section 3."""
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * gamma + beta


def rms_norm(x, gamma, epsilon):
    """`x / sqrt(mean of squares + epsilon) * gamma`. Zhang & Sennrich 2019, section 4."""
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + epsilon) * gamma
