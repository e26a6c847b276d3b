"""Biases on attention scores that depend on the distance between query and key."""

import math

import keras
import numpy as np
from keras import ops

from keras_arch.backend import lookup, write_slots
from keras_arch.checks import check_positive
from keras_arch.layers.part import Part, fresh


class DistanceBias(Part):
    """A bias for the scores of a whole stack of attention layers, made once from the positions.

    Call arguments:
        positions: int `[B, T]`.

    Returns:
        float `[B, N, T, T]`; in decoding `[B, N, T, S]` over all S slots of the cache.
    """

    def call(self, positions):
        return self.bias(positions, positions)

    def compute_output_spec(self, positions):
        batch, time = positions.shape
        return keras.KerasTensor((batch, self.heads, time, time), self.compute_dtype)

    def start(self, batch, length):
        """Returns the positions of the cached slots: `position`, int32 `[B, S]`."""
        return {"position": ops.zeros((batch, length), "int32")}

    def step(self, positions, *, state, cursor):
        """Returns the bias of a chunk over all slots and the state with its positions."""
        cached = write_slots(state["position"], positions, cursor, axis=1)
        return self.bias(positions, cached), {"position": cached}


def relative_bucket(distance, buckets, max_distance, bidirectional):
    """Returns the bucket of a distance: exact for near, logarithmic for far, one for the rest.

    Source: Raffel et al. 2020 (T5), section 2.1, and its reference implementation.

    Args:
        distance: int array, key position - query position.
        buckets: Number of buckets.
        max_distance: Distance from which all share the last bucket.
        bidirectional: If True half of the buckets are for keys after the query; otherwise
            those keys share bucket 0.

    Returns:
        int32 array of the same shape, in [0, buckets).
    """
    offset = 0
    if bidirectional:
        buckets //= 2
        offset = ops.where(distance > 0, buckets, 0)
        distance = ops.abs(distance)
    else:
        distance = ops.maximum(-distance, 0)
    exact = buckets // 2
    # max(distance, 1) only keeps the logarithm finite where the exact branch is taken.
    ratio = ops.cast(ops.maximum(distance, 1), "float32") / exact
    far = exact + ops.cast(
        ops.log(ratio) / math.log(max_distance / exact) * (buckets - exact), "int32"
    )
    return offset + ops.where(distance < exact, distance, ops.minimum(far, buckets - 1))


def check_buckets(buckets, max_distance):
    """Raises ValueError if there can be no such buckets; see `relative_bucket`."""
    check_positive(buckets=buckets, max_distance=max_distance)
    if buckets % 2 or buckets < 4 or max_distance <= buckets // 2:
        raise ValueError(
            "buckets must be even and at least 4, max_distance above buckets / 2; received "
            f"buckets={buckets}, max_distance={max_distance}."
        )


@keras.saving.register_keras_serializable(package="keras_arch")
class RelativeBias(DistanceBias):
    """T5's learned bias: one number per head and bucket of distances.

    Source: Raffel et al. 2020, section 2.1. One layer serves the whole stack.

    Args:
        heads: N.
        buckets: Number of buckets, even and at least 4.
        max_distance: Distance from which all share the last bucket.
        bidirectional: True in an encoder, False in a decoder.
        embeddings_initializer: Initializer of the table `[buckets, N]`.
    """

    def __init__(
        self,
        heads,
        buckets=32,
        max_distance=128,
        bidirectional=False,
        embeddings_initializer="uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive(heads=heads)
        check_buckets(buckets, max_distance)
        self.heads = heads
        self.buckets = buckets
        self.max_distance = max_distance
        self.bidirectional = bidirectional
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)

    def build(self, positions_shape):
        self.table = self.add_weight(
            shape=(self.buckets, self.heads),
            initializer=fresh(self.embeddings_initializer),
            name="table",
        )

    def bias(self, query_positions, key_positions):
        """Returns float `[B, N, T, S]` for positions `[B, T]` and `[B, S]`."""
        distance = key_positions[:, None, :] - query_positions[:, :, None]
        bucket = relative_bucket(distance, self.buckets, self.max_distance, self.bidirectional)
        bias = lookup(ops.cast(self.table, self.compute_dtype), bucket)
        return ops.transpose(bias, (0, 3, 1, 2))


def alibi_slopes(heads):
    """Returns ALiBi's slopes, float numpy `[N]`.

    `2^(-8/N), 2^(-16/N), ...` for N a power of two; otherwise those of the power below, then every
    other one of the power above. Source: Press et al. 2022, section 3, and its implementation.
    """
    power = 2 ** math.floor(math.log2(heads))
    slopes = 2.0 ** (-8.0 / power * np.arange(1, power + 1))
    between = 2.0 ** (-4.0 / power * np.arange(1, 2 * (heads - power), 2))
    return np.concatenate([slopes, between])


@keras.saving.register_keras_serializable(package="keras_arch")
class AlibiBias(DistanceBias):
    """Minus the distance to the key times a fixed slope per head. Source: Press et al. 2022.

    Args:
        heads: N.
    """

    def __init__(self, heads, **kwargs):
        super().__init__(**kwargs)
        check_positive(heads=heads)
        self.heads = heads

    def bias(self, query_positions, key_positions):
        """Returns float `[B, N, T, S]` for positions `[B, T]` and `[B, S]`."""
        distance = ops.abs(query_positions[:, :, None] - key_positions[:, None, :])
        slopes = ops.cast(alibi_slopes(self.heads), "float32")[:, None, None]
        return ops.cast(-slopes * ops.cast(distance[:, None], "float32"), self.compute_dtype)
