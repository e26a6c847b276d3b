"""Attention by location: weights read off the decoder's state, whatever the memory holds."""

import keras
from keras import ops

from keras_arch.backend import checked
from keras_arch.checks import check_positive
from keras_arch.layers.context_attention import ContextAttention
from keras_arch.layers.part import fresh


@keras.saving.register_keras_serializable(package="keras_arch")
class LocationAttention(ContextAttention):
    """Scores every place of the source by a linear map of the query alone: `W q + b`.

    The query of a decoder is its input joined with its state. The map has `max_length` outputs, of
    which a source takes as many as it has real vectors; they are numbered from the first real one,
    whatever pads stand around them. Source: Luong et al. 2015, equation 8 ("location").

    Call arguments and result as in `ContextAttention`.

    Args:
        max_length: Most real vectors in a memory.
        kernel_initializer: Initializer of W.

    Raises:
        ValueError: If `max_length` is not positive; when called, if a row of the memory has more
            real vectors (as `keras_arch.backend.checked` can tell).
    """

    reads_inputs = True

    def __init__(self, max_length, kernel_initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        check_positive(max_length=max_length)
        self.max_length = max_length
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.place_scores = keras.layers.Dense(
            max_length,
            kernel_initializer=fresh(self.kernel_initializer),
            dtype=self.dtype_policy,
            name="place_scores",
        )

    def build(self, query_shape, memory_shape):
        self.place_scores.build(query_shape)

    def keys(self, memory, memory_valid):
        """Returns the number of each real memory vector, `place`, int32 `[B, S]`."""
        place = ops.cumsum(ops.cast(memory_valid, "int32"), axis=1) - 1
        if memory_valid.shape[1] is None or memory_valid.shape[1] > self.max_length:
            longest = ops.max(place) + 1
            place = checked(
                place,
                longest <= self.max_length,
                "the source must have at most max_length={} real tokens; received {}.",
                ops.convert_to_tensor(self.max_length),
                longest,
            )
        return {"place": ops.clip(place, 0, self.max_length - 1)}

    def query_layers(self):
        """Returns the map."""
        return {"places": self.place_scores}

    def scores(self, query, projected, coverage, reads):
        """Returns the scores, float `[B, T, S]`."""
        scores = reads.layers["places"](query)
        place = projected["place"][:, None]
        place = ops.broadcast_to(place, (*ops.shape(scores)[:2], ops.shape(place)[2]))
        return ops.take_along_axis(scores, place, axis=2)
