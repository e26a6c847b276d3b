"""Span corruption and its undoing, one token at a time; `random_spans_noise_mask` of T5's code."""

import numpy as np


def corrupt(ids, noise, sentinels):
    """Inputs and targets of Raffel et al. 2020, figure 2, as lists."""
    inputs, targets, used = [], [], 0
    for i, token in enumerate(ids):
        if not noise[i]:
            inputs.append(token)
            continue
        if i == 0 or not noise[i - 1]:
            inputs.append(sentinels[used])
            targets.append(sentinels[used])
            used += 1
        targets.append(token)
    return inputs, [*targets, sentinels[used]]


def rebuild(inputs, targets, sentinels):
    """The row that inputs and targets were made of, as a list."""
    spans, span = {}, None
    for token in targets:
        if token in sentinels:
            span = spans.setdefault(token, [])
        else:
            span.append(token)
    row = []
    for token in inputs:
        row += spans[token] if token in sentinels else [token]
    return row


def span_counts(length, rate, mean_length):
    """Numbers of noise tokens and spans as T5's code computes them, in float32."""
    tokens = int(np.round(np.float32(length) * np.float32(rate)))
    tokens = min(max(tokens, 1), length - 1)
    return tokens, max(int(np.round(np.float32(tokens) / np.float32(mean_length))), 1)


def spans(noise):
    """`(begin, end)` of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.asarray(noise, int), [0]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
