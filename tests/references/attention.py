"""Scaled dot-product attention, one pair of tokens at a time. Vaswani et al. 2017, section 3.2.

Float64 throughout. Shapes: B rows, T tokens, D width, N heads, K key/value heads, H head width.
"""

import math

import numpy as np


def allowed(query, key, valid, positions, segment_ids=None, causal=True, window=None):
    """Says whether the token in slot `query` of one row may look at the one in slot `key`.

    Args:
        query, key: Slots.
        valid: bool [T].
        positions: int [T].
        segment_ids: Optional int [T]; only tokens of the same segment see each other.
        causal: Whether a later slot is hidden.
        window: Optional; the distance in positions must be below it (Beltagy et al. 2020).
    """
    if not valid[query] or not valid[key]:
        return False
    if causal and key > query:
        return False
    if segment_ids is not None and segment_ids[query] != segment_ids[key]:
        return False
    return window is None or positions[query] - positions[key] < window


def softmax(scores):
    """Softmax of a list of numbers; an empty list gives an empty list."""
    exponentials = [math.exp(score - max(scores)) for score in scores]
    return [e / sum(exponentials) for e in exponentials]


def row_weights(query, key, scale, sees, bias=None, logit_cap=None):
    """Attention weights of one row and one head, [T, T].

    Args:
        query, key: [T, H].
        scale: What the dot products are multiplied by.
        sees: Function of two slots, see `allowed`.
        bias: Optional [T, T], added to the scores.
        logit_cap: Optional c; scores become c * tanh(score / c) before the bias is added.
    """
    time = len(query)
    weights = np.zeros((time, time))
    for t in range(time):
        slots = [s for s in range(time) if sees(t, s)]
        scores = []
        for s in slots:
            score = scale * float(np.dot(query[t], key[s]))
            if logit_cap is not None:
                score = logit_cap * math.tanh(score / logit_cap)
            scores.append(score if bias is None else score + bias[t, s])
        for s, weight in zip(slots, softmax(scores), strict=True):
            weights[t, s] = weight
    return weights


def self_attention(
    x,
    valid,
    positions,
    matrices,
    heads,
    head_width,
    key_value_heads=None,
    segment_ids=None,
    bias=None,
    causal=True,
    window=None,
    logit_cap=None,
    scale=None,
    rotate=None,
    query_norm=None,
    key_norm=None,
):
    """Self-attention with all its options, one row and one head at a time.

    Query head n reads key/value head `n // (N / K)` (Ainslie et al. 2023, section 2.2). Query and
    key are normed, then rotated. What stands in a pad is never read; a pad mixes nothing.

    Args:
        x: [B, T, D].
        valid, positions, segment_ids: [B, T].
        matrices: Dict with `query` [D, N * H], `key` and `value` [D, K * H], `output` [N * H, D];
            optionally their biases `query_bias`, ... .
        bias: Optional [B or 1, N, T, T].
        rotate: Optional function (vector [H], position, length of its document) -> vector [H].
        query_norm, key_norm: Optional functions of a vector [H].

    Returns:
        The output [B, T, D] and the weights [B, N, T, T].
    """
    rows, time, _ = x.shape
    key_value_heads = key_value_heads or heads
    scale = 1 / math.sqrt(head_width) if scale is None else scale
    weights = np.zeros((rows, heads, time, time))
    mixed = np.zeros((rows, time, heads * head_width))
    for b in range(rows):
        row = np.where(valid[b][:, None], x[b], 0.0)
        documents = np.zeros(time) if segment_ids is None else segment_ids[b]
        lengths = [max(positions[b][documents == document]) + 1 for document in documents]

        def project(name, row=row):
            return row @ matrices[name] + matrices.get(f"{name}_bias", 0.0)

        def head(table, n, norm=None, b=b, lengths=lengths, turn=True):
            vectors = table[:, n * head_width : (n + 1) * head_width]
            if norm is not None:
                vectors = np.array([norm(v) for v in vectors])
            if turn and rotate is not None:
                turns = zip(vectors, positions[b], lengths, strict=True)
                vectors = np.array([rotate(*turn) for turn in turns])
            return vectors

        def sees(t, s, b=b):
            segments = None if segment_ids is None else segment_ids[b]
            return allowed(t, s, valid[b], positions[b], segments, causal, window)

        for n in range(heads):
            k = n // (heads // key_value_heads)
            head_bias = None if bias is None else bias[b % len(bias), n]
            weights[b, n] = row_weights(
                head(project("query"), n, query_norm),
                head(project("key"), k, key_norm),
                scale,
                sees,
                head_bias,
                logit_cap,
            )
            value = head(project("value"), k, turn=False)
            mixed[b, :, n * head_width : (n + 1) * head_width] = weights[b, n] @ value
    return mixed @ matrices["output"] + matrices.get("output_bias", 0.0), weights


def cross_attention(
    x, memory, memory_valid, matrices, heads, head_width, key_value_heads=None, scale=None
):
    """Attention to the real vectors of a memory. Vaswani et al. 2017, section 3.2.3.

    Args:
        x: [B, T, D].
        memory: [B, S, M]; what stands at its pads is never read.
        memory_valid: [B, S].
        matrices: As in `self_attention`; `key` and `value` are [M, K * H].

    Returns:
        The output [B, T, D] and the weights [B, N, T, S].
    """
    (rows, time, _), length = x.shape, memory.shape[1]
    key_value_heads = key_value_heads or heads
    scale = 1 / math.sqrt(head_width) if scale is None else scale
    weights = np.zeros((rows, heads, time, length))
    mixed = np.zeros((rows, time, heads * head_width))
    for b in range(rows):
        real = np.flatnonzero(memory_valid[b])
        for n in range(heads):
            own = slice(n * head_width, (n + 1) * head_width)
            k = n // (heads // key_value_heads)
            shared = slice(k * head_width, (k + 1) * head_width)
            for t in range(time):
                query = (x[b, t] @ matrices["query"] + matrices.get("query_bias", 0.0))[own]
                tables = [
                    (memory[b, s] @ matrices[name] + matrices.get(f"{name}_bias", 0.0))[shared]
                    for name in ("key", "value")
                    for s in real
                ]
                keys, values = tables[: len(real)], tables[len(real) :]
                shares = softmax([scale * float(np.dot(query, key)) for key in keys])
                for s, value, share in zip(real, values, shares, strict=True):
                    weights[b, n, t, s] = share
                    mixed[b, t, own] += share * value
    return mixed @ matrices["output"] + matrices.get("output_bias", 0.0), weights
