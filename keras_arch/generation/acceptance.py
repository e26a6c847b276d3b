"""Which drafted tokens stand: the arithmetic of speculative decoding."""

from keras import ops


def accept(p, q, tokens, usable, uniforms):
    """Decides which drafted tokens stand and draws the one after them.

    Args:
        p: float32 `[B, K + 1, V]`, the model's distributions.
        q: float32 `[B, K + 1, V]`, those that the tokens were drawn from, and any.
        tokens: int32 `[B, K]`, the drafted tokens.
        usable: int32 `[B]`, how many of them may stand.
        uniforms: float32 `[K + 1, B]`, random in [0, 1).

    Returns:
        `(accepted, final)`, int32 `[B]`: how many stand, and the token that follows.
    """
    place = ops.arange(p.shape[1], dtype="int32")
    used = place < usable[:, None]
    tokens = ops.pad(tokens, ((0, 0), (0, 1)))
    chances = [ops.take_along_axis(x, tokens[..., None], axis=-1)[..., 0] for x in (p, q)]
    stands = ops.transpose(uniforms) * chances[1] < chances[0]
    # Past the drafts in use nothing was drawn from q, and the draw is from p.
    stands, q = ops.logical_and(stands, used), ops.where(used[..., None], q, 0.0)
    accepted = ops.min(ops.where(stands, tokens.shape[1], place), axis=1)
    at = ops.one_hot(accepted, tokens.shape[1], dtype=p.dtype)[..., None]
    p, q = ops.sum(p * at, axis=1), ops.sum(q * at, axis=1)
    rest = ops.maximum(p - q, 0.0)
    # Equal up to rounding, the two may leave nothing.
    some = ops.sum(rest, axis=-1, keepdims=True) > 0
    return accepted, draw(ops.where(some, rest, p), uniforms[-1])


def draw(weights, uniform):
    """Returns int32 `[B]`, drawn in proportion to weights `[B, V]` by numbers `[B]` in [0, 1)."""
    cumulative = ops.cumsum(weights, axis=-1)
    threshold = uniform[:, None] * cumulative[:, -1:]
    return ops.sum(ops.cast(cumulative <= threshold, "int32"), axis=-1)


def insert(x, values, begin, count):
    """Puts the first `count` `[B]` of values `[B, M]` into `x` `[B, L]`, from `begin` `[B]` on."""
    place = ops.arange(x.shape[1], dtype="int32") - begin[:, None]
    inserted = ops.logical_and(place >= 0, place < count[:, None])
    place = ops.clip(place, 0, values.shape[1] - 1)
    return ops.where(inserted, ops.take_along_axis(values, place, axis=1), x)
