"""Absolute positions: counted from `valid`, then looked up or computed."""

import math

import keras
from keras import ops

from keras_arch.backend import lookup
from keras_arch.checks import check_count, check_positive
from keras_arch.layers.part import Part, fresh


def check_context(length, context_length):
    """Raises ValueError if a static `length` is beyond `context_length`."""
    if length is not None and context_length is not None and length > context_length:
        raise ValueError(
            f"the sequence is longer than the model's context: received length={length}, "
            f"context_length={context_length}. Shorten it, or build a model with more context."
        )


def shortest_context(layers):
    """Returns the least `context_length` of some layers; None if none sets a limit."""
    limits = [getattr(layer, "context_length", None) for layer in layers]
    return min((limit for limit in limits if limit is not None), default=None)


@keras.saving.register_keras_serializable(package="keras_arch")
class TokenPositions(Part):
    """Numbers the real tokens of each row 0, 1, 2, ..., whatever pads stand around them.

    The position of a token is the count of real tokens before it, so a row padded on the left and
    the same row padded on the right get the same positions. A pad gets that of the token before it.

    Args:
        context_length: Longest sequence the model takes; None means no limit.

    Call arguments:
        valid: bool `[B, T]`, True = real token.
        segment_ids: Optional int `[B, T]`, the document of each token in a packed row, in
            contiguous runs; positions restart with each document.

    Returns:
        int32 `[B, T]`.

    Raises:
        ValueError: If T is known and beyond `context_length`.
    """

    def __init__(self, context_length=None, **kwargs):
        super().__init__(**kwargs)
        if context_length is not None:
            check_positive(context_length=context_length)
        self.context_length = context_length

    def call(self, valid, segment_ids=None):
        check_context(valid.shape[1], self.context_length)
        return ops.maximum(_count_real(valid, segment_ids) - 1, 0)

    def compute_output_spec(self, valid, segment_ids=None):
        check_context(valid.shape[1], self.context_length)
        return keras.KerasTensor(valid.shape, "int32")

    def start(self, batch, length):
        """Returns the counts before the first token: `count` and `segment`, int32 `[B]`."""
        zeros = ops.zeros((batch,), "int32")
        return {"count": zeros, "segment": zeros}

    def step(self, valid, segment_ids=None, *, state, cursor):
        """Continues the count: returns positions int32 `[B, T]` and the new state."""
        if segment_ids is None:
            segment_ids = ops.zeros_like(ops.cast(valid, "int32"))
        carried = segment_ids == state["segment"][:, None]
        count = _count_real(valid, segment_ids) + ops.where(carried, state["count"][:, None], 0)
        state = {"count": count[:, -1], "segment": ops.cast(segment_ids[:, -1], "int32")}
        return ops.maximum(count - 1, 0), state

    def rewind(self, state, dropped):
        """Counts the dropped tokens of the last chunk, of one segment, no more."""
        return {**state, "count": state["count"] - ops.sum(ops.cast(dropped, "int32"), axis=1)}


def _count_real(valid, segment_ids):
    """Counts the real tokens up to and with each slot, in its segment: int32 `[B, T]`."""
    real = ops.cast(valid, "int32")
    if segment_ids is None:
        return ops.cumsum(real, axis=1)
    same = segment_ids[:, :, None] == segment_ids[:, None, :]
    time = ops.arange(ops.shape(valid)[1])
    counted = ops.logical_and(same, time[None, :] <= time[:, None])
    return ops.sum(ops.where(counted, real[:, None, :], 0), axis=2)


@keras.saving.register_keras_serializable(package="keras_arch")
class LearnedPositions(Part):
    """A table of position vectors, learned (Radford et al. 2018; Devlin et al. 2018).

    Args:
        context_length: The longest sequence the model takes.
        width: D.
        embeddings_initializer: Initializer of the table.
        offset: Rows of the table before that of position 0, never read. Two in BART's published
            tables: fairseq numbers positions from the one after the pad's id, 1.

    Call arguments:
        positions: int `[B, T]`.

    Returns:
        float `[B, T, D]`.

    Raises:
        ValueError: If T is known and beyond `context_length`.
    """

    def __init__(self, context_length, width, embeddings_initializer="uniform", offset=0, **kwargs):
        super().__init__(**kwargs)
        check_positive(context_length=context_length, width=width)
        check_count(offset=offset)
        self.context_length = context_length
        self.width = width
        self.offset = offset
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)

    def build(self, positions_shape):
        self.table = self.add_weight(
            shape=(self.offset + self.context_length, self.width),
            initializer=fresh(self.embeddings_initializer),
            name="table",
        )

    def call(self, positions):
        check_context(positions.shape[1], self.context_length)
        return lookup(ops.cast(self.table, self.compute_dtype), positions + self.offset)

    def compute_output_spec(self, positions):
        check_context(positions.shape[1], self.context_length)
        return keras.KerasTensor((*positions.shape, self.width), self.compute_dtype)


#: Layout of sines and cosines -> the axis that parts them, before it is merged with that of i.
_AXES = {"interleaved": -1, "half_split": -2}


@keras.saving.register_keras_serializable(package="keras_arch")
class SinusoidalPositions(Part):
    """Sines and cosines of geometric wavelengths.

    `PE(p, 2i) = sin(p / base^(2i/D))`, `PE(p, 2i+1) = cos(p / base^(2i/D))`. Source: Vaswani et
    al. 2017, section 3.5. Angles are float32 in every precision.

    Args:
        width: D, even.
        base: The longest wavelength over 2 pi.
        layout: Where they stand: "interleaved", sines on the even columns, cosines on the odd, as
            above; "half_split", all sines, then all cosines (Marian).

    Call arguments:
        positions: int `[B, T]`.

    Returns:
        float `[B, T, D]`.

    Raises:
        ValueError: If `width` is odd, `base` is not above 1, or `layout` is unknown.
    """

    def __init__(self, width, base=10000.0, layout="interleaved", **kwargs):
        super().__init__(**kwargs)
        check_positive(width=width)
        if width % 2:
            raise ValueError(f"width must be even; received width={width}.")
        if not base > 1.0:
            raise ValueError(f"base must be above 1; received base={base}.")
        if layout not in _AXES:
            raise ValueError(f"layout must be one of {tuple(_AXES)}; received layout={layout!r}.")
        self.width = width
        self.base = base
        self.layout = layout

    def call(self, positions):
        exponents = ops.arange(0, self.width, 2, dtype="float32") / self.width
        frequencies = ops.exp(-math.log(self.base) * exponents)
        angles = ops.cast(positions, "float32")[..., None] * frequencies
        pairs = ops.stack([ops.sin(angles), ops.cos(angles)], axis=_AXES[self.layout])
        shape = (*ops.shape(positions), self.width)
        return ops.cast(ops.reshape(pairs, shape), self.compute_dtype)

    def compute_output_spec(self, positions):
        return keras.KerasTensor((*positions.shape, self.width), self.compute_dtype)
