"""Attention of a decoder over a memory, one query and one memory vector at a time.

Float64 throughout. Each score function takes a query `[D]`, the real memory vectors of its row
`[n, M]`, and, where it reads it, how much each got before `[n]`; it returns n scores.
"""

import math

import numpy as np

from tests.references.attention import softmax


def additive(query, memory, w, u, v, g=None, b=0.0, coverage=None, coverage_vector=None):
    """`v . tanh(W q + U m + b + w c)` (Bahdanau et al. 2015; See et al. 2017, equation 11).

    With `g`, v is `g v / |v|` (Salimans and Kingma 2016).
    """
    if g is not None:
        v = g * v / math.sqrt(sum(v**2))
    scores = []
    for s, vector in enumerate(memory):
        hidden = query @ w + vector @ u + b
        if coverage is not None:
            hidden = hidden + coverage_vector * coverage[s]
        scores.append(float(np.tanh(hidden) @ v))
    return scores


def multiplicative(query, memory, w=None):
    """`q . m` or `q . W m` (Luong et al. 2015, equation 8)."""
    return [float(query @ (vector if w is None else vector @ w)) for vector in memory]


def location(query, memory, w, b):
    """The first n of the places' scores `W q + b`."""
    return list((query @ w + b)[: len(memory)])


def local_weights(query, memory, scores, window, place_projection, place_score):
    """Softmax within the window, times the bell (Luong et al. 2015, equations 9 and 10)."""
    logit = float(np.tanh(query @ place_projection) @ place_score)
    place = len(memory) / (1 + math.exp(-logit))
    near = [s for s in range(len(memory)) if abs(s - place) <= window]
    weights = np.zeros(len(memory))
    for s, weight in zip(near, softmax([scores[s] for s in near]), strict=True):
        weights[s] = weight * math.exp(-((s - place) ** 2) / (2 * (window / 2) ** 2))
    return weights


def attend(query, memory, memory_valid, weigh):
    """Contexts and weights of all queries.

    Args:
        query: [B, T, D].
        memory: [B, S, M]; what stands at a pad is never read.
        memory_valid: bool [B, S].
        weigh: Function of b, t, a query and the row's real memory vectors; returns their weights.

    Returns:
        [B, T, M] and [B, T, S].
    """
    rows, time, _ = query.shape
    contexts = np.zeros((rows, time, memory.shape[2]))
    weights = np.zeros((rows, time, memory.shape[1]))
    for b in range(rows):
        real = np.flatnonzero(memory_valid[b])
        for t in range(time):
            if len(real):
                weights[b, t, real] = weigh(b, t, query[b, t], memory[b, real])
                contexts[b, t] = weights[b, t, real] @ memory[b, real]
    return contexts, weights
