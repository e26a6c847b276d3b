"""Token cross-entropy, perplexity and packing, one token at a time. Float64."""

import math

import numpy as np


def log_softmax(logits):
    """Natural logarithms of the softmax of a list of numbers."""
    top = max(logits)
    log_total = top + math.log(sum(math.exp(z - top) for z in logits))
    return [z - log_total for z in logits]


def token_loss(target, logits, label_smoothing=0.0, z_loss=0.0):
    """The loss of one token, in nats.

    `-sum_v q(v) log p(v)` with `q = (1 - e) one_hot + e / V` (Szegedy et al. 2016, section 7), plus
    `z_loss * log(Z)^2` (Chowdhery et al. 2022, section 5).
    """
    size = len(logits)
    log_p = log_softmax(logits)
    loss = 0.0
    for v in range(size):
        q = (1 - label_smoothing) * (v == target) + label_smoothing / size
        loss -= q * log_p[v]
    log_total = logits[0] - log_p[0]
    return loss + z_loss * log_total**2


def crossentropy(targets, logits, weights=None, label_smoothing=0.0, z_loss=0.0, ignored=-1):
    """Weighted sum of the losses of all counted tokens, and the sum of their weights.

    Args:
        targets: int [B, T].
        logits: [B, T, V].
        weights: Optional [B, T].
        ignored: A target that counts as weight 0.
    """
    total = count = 0.0
    for index in np.ndindex(*targets.shape):
        weight = 1.0 if weights is None else float(weights[index])
        if weight == 0.0 or targets[index] == ignored:
            continue
        scores = [float(z) for z in logits[index]]
        loss = token_loss(int(targets[index]), scores, label_smoothing, z_loss)
        total += weight * loss
        count += weight
    return total, count


def mean_crossentropy(*arguments, **options):
    """`crossentropy` per token; 0 if there is none."""
    total, count = crossentropy(*arguments, **options)
    return total / count if count else 0.0


def perplexity(probabilities):
    """The inverse geometric mean of the probabilities that were given to the true tokens."""
    return math.prod(probabilities) ** (-1 / len(probabilities))


def pack(documents, length, separator_id=None):
    """Rows of (token, document) pairs: documents end to end, cut every `length` tokens."""
    stream = []
    for i, document in enumerate(documents):
        ids = list(document) + ([] if separator_id is None else [separator_id])
        stream += [(token, i) for token in ids]
    return [stream[begin : begin + length] for begin in range(0, len(stream), length)]
