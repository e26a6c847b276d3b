"""Scaled dot-product attention in three steps: allow, score, mix. Shared by every attention layer.

Shapes: B batch, T query time, S key time, N heads, K key/value heads, H head width.
"""

from keras import ops

LOWEST = -3.0e38  # finite, so that a row of nothing else gives no NaN


def segments(valid, segment_ids=None):
    """Returns which document each slot belongs to, int32 `[B, T]`; 0 means it is a pad."""
    real = ops.cast(valid, "int32")
    if segment_ids is None:
        return real
    # Ids may start at 0, which here means a pad.
    return real * (ops.cast(segment_ids, "int32") + 1)


def same_segment(query_segments, key_segments):
    """Returns which keys are real and of the query's document, bool `[B, T, S]`."""
    same = query_segments[:, :, None] == key_segments[:, None, :]
    return ops.logical_and(same, key_segments[:, None, :] > 0)


def causal(query_time, key_time, cursor):
    """Returns which slots a query sees, bool `[1, T, S]`: its own (`cursor` + row) and earlier."""
    query_slots = cursor + ops.arange(query_time)
    return (ops.arange(key_time)[None, :] <= query_slots[:, None])[None]


def within_window(query_positions, key_positions, window):
    """Returns which keys are among the last `window` tokens up to the query, bool `[B, T, S]`."""
    return query_positions[:, :, None] - key_positions[:, None, :] < window


def split_heads(x, heads):
    """Turns `[B, T, heads * H]` into `[B, heads, T, H]`."""
    batch, time = ops.shape(x)[0], ops.shape(x)[1]
    x = ops.reshape(x, (batch, time, heads, x.shape[-1] // heads))
    return ops.transpose(x, (0, 2, 1, 3))


def merge_heads(x):
    """Turns `[B, heads, T, H]` into `[B, T, heads * H]`."""
    batch, time = ops.shape(x)[0], ops.shape(x)[2]
    x = ops.transpose(x, (0, 2, 1, 3))
    return ops.reshape(x, (batch, time, x.shape[2] * x.shape[3]))


def group_queries(query, key_value_heads):
    """Turns `[B, N, T, H]` into `[B, K, N / K * T, H]`: queries that share a key head, in a row."""
    if query.shape[1] == key_value_heads:
        return query
    batch, time = ops.shape(query)[0], ops.shape(query)[2]
    rows = query.shape[1] // key_value_heads * time
    return ops.reshape(query, (batch, key_value_heads, rows, ops.shape(query)[3]))


def ungroup_queries(x, heads, time):
    """Turns `[B, K, N / K * T, X]` into `[B, N, T, X]`."""
    if x.shape[1] == heads:
        return x
    return ops.reshape(x, (ops.shape(x)[0], heads, time, ops.shape(x)[3]))


def attention_scores(query, key, scale):
    """Returns `scale * query . key` for every pair, float `[B, N, T, S]`.

    Args:
        query: float `[B, N, T, H]`.
        key: float `[B, K, S, H]`, K divides N.
        scale: float.
    """
    grouped = group_queries(query * scale, key.shape[1])
    scores = ops.matmul(grouped, ops.transpose(key, (0, 1, 3, 2)))
    return ungroup_queries(scores, query.shape[1], ops.shape(query)[2])


def masked_softmax(scores, allow):
    """Softmax over the allowed keys, in float32; the others get exactly 0.

    A row that is allowed no key at all comes out uniform: its host selects it out.

    Args:
        scores: float `[B, N, T, S]`.
        allow: bool `[B or 1, T, S]`.

    Returns:
        float32 `[B, N, T, S]`.
    """
    scores = ops.where(allow[:, None], ops.cast(scores, "float32"), LOWEST)
    # Keras's softmax warns if there is one key, as there is for a first token.
    return ops.softmax(scores, axis=-1) if scores.shape[-1] != 1 else ops.ones_like(scores)


def mix_values(weights, value):
    """Returns the weighted sums of the values, float `[B, N, T, H]`.

    Args:
        weights: float `[B, N, T, S]`.
        value: float `[B, K, S, H]`, K divides N.
    """
    mixed = ops.matmul(group_queries(weights, value.shape[1]), value)
    return ungroup_queries(mixed, weights.shape[1], ops.shape(weights)[2])
