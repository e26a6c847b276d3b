"""Multiplicative attention (Luong et al. 2015): global, and local around a predicted place."""

import keras
from keras import ops

from keras_arch.checks import check_positive
from keras_arch.layers.context_attention import ContextAttention, softmax_over
from keras_arch.layers.part import fresh


@keras.saving.register_keras_serializable(package="keras_arch")
class MultiplicativeAttention(ContextAttention):
    """Scores a query q and a memory vector m by `q . m` ("dot") or `q . W m` ("general").

    Call arguments and result as in `ContextAttention`; `W m` is made once for a source. Source:
    Luong et al. 2015, equation 8.

    Args:
        general: Whether there is W; without, query and memory have one width.
        kernel_initializer: Initializer of W.

    Raises:
        ValueError: When built without W for a query and a memory of different widths.
    """

    def __init__(self, general=False, kernel_initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.general = general
        self.kernel_initializer = keras.initializers.get(kernel_initializer)

    def build(self, query_shape, memory_shape):
        if self.general:
            self.key_projection = self._projection(query_shape[-1], "key_projection")
            self.key_projection.build(memory_shape)
        elif query_shape[-1] != memory_shape[-1]:
            raise ValueError(
                f"{self.name} without a matrix needs query and memory of one width; received "
                f"widths {query_shape[-1]} and {memory_shape[-1]}. Use general=True."
            )

    def _projection(self, width, name):
        return keras.layers.Dense(
            width,
            use_bias=False,
            kernel_initializer=fresh(self.kernel_initializer),
            dtype=self.dtype_policy,
            name=name,
        )

    def keys(self, memory, memory_valid):
        """Returns `W m`, or m, as `key`, float `[B, S, D]`."""
        return {"key": self.key_projection(memory) if self.general else memory}

    def scores(self, query, projected, coverage, reads):
        """Returns the scores, float `[B, T, S]`."""
        return ops.matmul(query, ops.transpose(projected["key"], (0, 2, 1)))


@keras.saving.register_keras_serializable(package="keras_arch")
class LocalAttention(MultiplicativeAttention):
    """Multiplicative attention to a window around a place that each query predicts ("local-p").

    Of S real memory vectors, numbered from 0 whatever pads stand around them, a query looks at
    those at most `window` away from `p = S sigmoid(v . tanh(V q))`; their softmax is multiplied by
    `exp(-(s - p)^2 / (2 (window / 2)^2))`, so that the weights sum up to less than 1. Source: Luong
    et al. 2015, equations 9 and 10.

    Args:
        window: D of the paper, in memory vectors.
        width: Of the layer that predicts the place.
        general: As in `MultiplicativeAttention`.
        kernel_initializer: Initializer of all matrices.

    Raises:
        ValueError: If `window` or `width` is not positive; when built, as
            `MultiplicativeAttention`.
    """

    def __init__(self, window, width, general=False, kernel_initializer="glorot_uniform", **kwargs):
        super().__init__(general, kernel_initializer, **kwargs)
        check_positive(window=window, width=width)
        self.window = window
        self.width = width
        self.place_projection = self._projection(width, "place_projection")
        self.place_score = self._projection(1, "place_score")

    def build(self, query_shape, memory_shape):
        super().build(query_shape, memory_shape)
        self.place_projection.build(query_shape)
        self.place_score.build((*query_shape[:-1], self.width))

    def keys(self, memory, memory_valid):
        """Returns also the number of each memory vector, `place`, int32 `[B, S]`."""
        place = ops.cumsum(ops.cast(memory_valid, "int32"), axis=1) - 1
        return {**super().keys(memory, memory_valid), "place": place}

    def query_layers(self):
        """Returns the layers that predict the place."""
        return {"hidden": self.place_projection, "place": self.place_score}

    def weigh(self, scores, query, projected, reads):
        """Returns the softmax within the window, under the bell curve: float32 `[B, T, S]`."""
        predicted = reads.layers["place"](ops.tanh(reads.layers["hidden"](query)))
        predicted = ops.sigmoid(ops.cast(predicted, "float32"))
        length = ops.sum(ops.cast(projected["valid"], "float32"), axis=1)
        away = ops.cast(projected["place"], "float32")[:, None] - length[:, None, None] * predicted
        near = ops.logical_and(projected["valid"][:, None], ops.abs(away) <= self.window)
        return softmax_over(scores, near) * ops.exp(-0.5 * ops.square(away / (self.window / 2)))
