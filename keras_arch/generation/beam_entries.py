"""Entries of rows: what beam search takes, orders and keeps."""

from keras import ops


def take_entries(x, places):
    """Returns the entries of `x` `[R, M, ...]` at int places `[R, C]`, `[R, C, ...]`."""
    flat = ops.reshape(x, (-1, *ops.shape(x)[2:]))
    return ops.take(flat, places_among_all(places, ops.shape(x)[1]), axis=0)


def places_among_all(places, count):
    """Returns int32 places `[R, C]` among a row's `count` entries as places among all rows'."""
    rows = ops.arange(ops.shape(places)[0], dtype="int32")
    return ops.cast(places, "int32") + count * rows[:, None]
