"""Filters of next-token logits, for one row, in plain loops. Float64.

Each takes and returns a list of V logits; a forbidden token has minus infinity.
"""

import math

import numpy as np

FORBIDDEN = -math.inf


def probabilities(logits):
    """Softmax."""
    weights = np.exp(np.asarray(logits, "float64") - max(logits))
    return weights / weights.sum()


def _ranked(logits):
    """Ids from the most to the least probable; of equals, the lower first."""
    return sorted(range(len(logits)), key=lambda v: (-logits[v], v))


def _only(logits, kept):
    return [z if v in kept else FORBIDDEN for v, z in enumerate(logits)]


def temperature(logits, value):
    """`z / T`."""
    return [z / value for z in logits]


def top_k(logits, k):
    """The k most probable."""
    return _only(logits, _ranked(logits)[:k])


def top_p(logits, p):
    """The smallest set of the most probable whose probabilities sum to p or more, at least one.

    Holtzman et al. 2020, section 3.1.
    """
    each, kept, total = probabilities(logits), [], 0.0
    for v in _ranked(logits):
        if kept and total >= p:
            break
        kept.append(v)
        total += each[v]
    return _only(logits, kept)


def min_p(logits, p):
    """Those of probability at least p times the largest. Nguyen et al. 2024, section 3."""
    each = probabilities(logits)
    return _only(logits, [v for v, q in enumerate(each) if q >= p * max(each)])


def repetition_penalty(logits, tokens, penalty):
    """`z / penalty` for the tokens that were there, `z * penalty` where z < 0.

    Keskar et al. 2019, section 4.1.
    """
    changed = list(logits)
    for v in set(tokens):
        changed[v] = logits[v] / penalty if logits[v] > 0 else logits[v] * penalty
    return changed


def no_repeat_ngram(logits, tokens, n):
    """Forbids the ends of the n-grams of `tokens` that begin with its last n - 1.

    Paulus et al. 2017, section 2.5.
    """
    begin = list(tokens[len(tokens) - (n - 1) :])
    ends = set()
    for j in range(len(tokens) - n + 1):
        if list(tokens[j : j + n - 1]) == begin:
            ends.add(tokens[j + n - 1])
    return _without(logits, ends)


def minimum_length(logits, steps, stop_ids, n):
    """Forbids the stop ids before n tokens were generated."""
    return _without(logits, stop_ids) if steps < n else list(logits)


def _without(logits, forbidden):
    """A row that would have no token left keeps all."""
    left = [FORBIDDEN if v in forbidden else z for v, z in enumerate(logits)]
    return left if max(left) > FORBIDDEN else list(logits)
