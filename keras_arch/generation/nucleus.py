"""The smallest set of tokens that holds a probability p; Holtzman et al. 2020, section 3.1."""

from keras import ops

# A set that misses p by the rounding of float32 sums holds it.
ROUNDING = 1e-6


def first_nucleus(probabilities, p):
    """Returns bool `[B, C]`: the fewest of descending probabilities that hold p, at least one."""
    before = ops.cumsum(probabilities, axis=-1) - probabilities
    first = ops.arange(before.shape[-1]) == 0
    return ops.logical_or(before < p * (1 - ROUNDING), first)


def nucleus(logits, p):
    """Returns bool `[B, V]`: the fewest most probable tokens that hold p; of equals, the first.

    A sort of 50,000 logits takes longer than a small model's step. Instead the gap to the best
    logit, up to which all tokens are kept, is found bit by bit, each by one sum: floats of one sign
    are ordered as the integers of the same bits are.

    Args:
        logits: float32 `[B, V]`; minus infinity = no probability.
        p: Number in [0, 1].
    """
    gap = ops.max(logits, axis=-1, keepdims=True) - logits
    weights, bits = ops.exp(-gap), ops.view(gap, "int32")

    def before(limit):
        """Returns `[B, 1]`, the weight of all tokens with a smaller gap."""
        return ops.sum(ops.where(bits < limit, weights, 0.0), axis=-1, keepdims=True)

    # Above 0, so that the best token is always kept.
    goal = ops.sum(weights, axis=-1, keepdims=True) * max(p * (1 - ROUNDING), 1e-9)

    def add_bit(i, limit):
        larger = ops.bitwise_or(limit, ops.left_shift(1, 30 - i))
        return ops.where(before(larger) < goal, larger, limit)

    limit = ops.fori_loop(0, 31, add_bit, ops.zeros_like(bits[:, :1]))
    # The tokens at the limit weigh the same: some are needed.
    equal = bits == limit
    weight = ops.max(ops.where(equal, weights, 0.0), axis=-1, keepdims=True)
    # The first of them has rank 1.
    rank = ops.cumsum(ops.cast(equal, "int32"), axis=-1)
    needed = before(limit) + ops.cast(rank - 1, "float32") * weight < goal
    return ops.logical_or(bits < limit, ops.logical_and(equal, needed))
