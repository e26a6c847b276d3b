"""Scaled dot-product attention in three steps: allow, score, mix. Shared by every attention layer.

Shapes: B batch, T query time, S key time, N heads, K key/value heads, H head width.
"""

from keras import ops

from keras_arch.backend import kernel
from keras_arch.checks import check_positive

LOWEST = -3.0e38  # finite, so that a row of nothing else gives no NaN


def check_heads(heads, head_width, key_value_heads):
    """Raises ValueError if one is not positive or `key_value_heads` does not divide `heads`."""
    check_positive(heads=heads, head_width=head_width, key_value_heads=key_value_heads)
    if heads % key_value_heads:
        raise ValueError(
            "key_value_heads must divide heads; received "
            f"heads={heads}, key_value_heads={key_value_heads}."
        )


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


def merge_batch(x):
    """Turns keys or values `[B, K, S, H]` into `[B * K, S, H]`.

    One batch axis: with two, of which one is 1, XLA on CPU copies a cache at each step.
    """
    batch, heads, time, width = ops.shape(x)
    return ops.reshape(x, (batch * heads, time, width))


def split_batch(x, heads):
    """Turns keys or values `[B * K, S, H]` back into `[B, K, S, H]`."""
    rows, time, width = ops.shape(x)
    return ops.reshape(x, (rows // heads, heads, time, width))


def attention_scores(query, key, key_value_heads, scale):
    """Returns `scale * query . key` for every pair, float `[B, N, T, S]`.

    Args:
        query: float `[B, N, T, H]`.
        key: float `[B * K, S, H]`, K divides N.
        key_value_heads: K.
        scale: float.
    """
    batch, heads, time, _ = ops.shape(query)
    grouped = _group(query * scale, key_value_heads)
    scores = ops.matmul(grouped, ops.transpose(key, (0, 2, 1)))
    return ops.reshape(scores, (batch, heads, time, ops.shape(key)[1]))


def _group(x, key_value_heads):
    """Turns `[B, N, T, X]` into `[B * K, N / K * T, X]`: those that share a key head, in a row."""
    batch, heads, time, width = ops.shape(x)
    return ops.reshape(x, (batch * key_value_heads, heads // key_value_heads * time, width))


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


def mix_values(weights, value, key_value_heads):
    """Returns the weighted sums of the values, float `[B, N, T, H]`.

    Args:
        weights: float `[B, N, T, S]`.
        value: float `[B * K, S, H]`, K divides N.
        key_value_heads: K.
    """
    batch, heads, time, _ = ops.shape(weights)
    mixed = ops.matmul(_group(weights, key_value_heads), value)
    return ops.reshape(mixed, (batch, heads, time, ops.shape(value)[2]))


def can_fuse():
    """Whether `fused_attention` can be used: on PyTorch, whose compiler is not asked to fuse."""
    return kernel("scaled_dot_product_attention") is not None


def fused_attention(query, key, value, key_value_heads, scale, allow, bias=None):
    """Returns what the three steps make, float `[B, N, T, H]`, without `[B, N, T, S]` in memory.

    What a query gets that is allowed no key is undefined, but finite.

    Args:
        query: float `[B, N, T, H]`.
        key: float `[B * K, S, H]`, K divides N.
        value: float `[B * K, S, H]`.
        key_value_heads: K.
        scale: float.
        allow: bool `[B or 1, T, S]`.
        bias: Optional float `[B or 1, N, T, S]`, added to the scores.
    """
    allow = allow[:, None]
    # A softmax over nothing would be NaN.
    allow = ops.logical_or(allow, ops.logical_not(ops.any(allow, axis=-1, keepdims=True)))
    mask = allow if bias is None else ops.cast(ops.where(allow, bias, LOWEST), query.dtype)
    return kernel("scaled_dot_product_attention")(
        query,
        split_batch(key, key_value_heads),
        split_batch(value, key_value_heads),
        attn_mask=mask,
        scale=scale,
        enable_gqa=key_value_heads != query.shape[1],
    )


def fold_rows(x, rows):
    """Turns `[rows * W, T, X]` into `[rows, W * T, X]`: W rows (beams) that share a memory's row.

    W is 1 outside of beam search.
    """
    return ops.reshape(x, (rows, -1, x.shape[-1] or ops.shape(x)[-1]))


def unfold_rows(x, queries):
    """Turns `[B, W * T, X]` into `[B * W, T, X]`; `queries` is `(B * W, T)`."""
    return ops.reshape(x, (*queries, x.shape[-1] or ops.shape(x)[-1]))
