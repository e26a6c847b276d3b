"""Order: what backends give back for equal values, and how fast they sort."""

import keras
from keras import ops


def top_places(x, k):
    """Returns int32 `[B, k]`, the places of the k largest, descending; of equals, the first.

    Args:
        x: `[B, C]`.
        k: Python int, at most C.
    """
    values, places = ops.top_k(x, k)
    if keras.backend.backend() != "torch":
        return ops.cast(places, "int32")
    # PyTorch keeps any of those equal to the last: take their first, and order equals by place.
    last = values[:, -1:]
    distance = -ops.arange(x.shape[-1], dtype="float32")
    _, firsts = ops.top_k(ops.where(x == last, distance, -float("inf")), k)
    above = ops.sum(ops.cast(values > last, "int32"), axis=-1, keepdims=True)
    rank = ops.arange(k, dtype="int32")[None]
    firsts = ops.take_along_axis(firsts, ops.maximum(rank - above, 0), axis=-1)
    places = ops.sort(ops.where(rank < above, places, firsts), axis=-1)
    order = ops.argsort(-ops.take_along_axis(x, places, axis=-1), axis=-1)
    return ops.cast(ops.take_along_axis(places, order, axis=-1), "int32")


def sorts_fast():
    """Returns whether a sort of a vocabulary takes less time than 31 sums over it.

    On PyTorch each sum is a kernel of its own; XLA makes one of comparison and sum.
    """
    return keras.backend.backend() == "torch"
