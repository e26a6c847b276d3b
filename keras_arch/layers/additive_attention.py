"""Additive attention (Bahdanau et al. 2015), maybe normalised, maybe with coverage."""

import keras
from keras import ops

from keras_arch.checks import check_positive
from keras_arch.layers.context_attention import ContextAttention
from keras_arch.layers.part import fresh


@keras.saving.register_keras_serializable(package="keras_arch")
class AdditiveAttention(ContextAttention):
    """Scores a query q and a memory vector m by `v . tanh(W q + U m + b)`.

    Call arguments and result as in `ContextAttention`; `U m` is made once for a source. Source:
    Bahdanau et al. 2015, appendix A.1.2 (without b).

    Args:
        width: Of the hidden layer.
        normalised: Whether v is `g v / |v|`, with g one number that starts at `width ** -0.5`
            (Salimans and Kingma 2016, section 2).
        use_bias: Whether there is b.
        coverage: Whether `w c` is added inside the tanh, with c the sum of the weights that the
            memory vector got from the queries before (See et al. 2017, equation 11).
        kernel_initializer: Initializer of W, U, v and w.

    Raises:
        ValueError: If `width` is not positive.
    """

    def __init__(
        self,
        width,
        normalised=False,
        use_bias=False,
        coverage=False,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive(width=width)
        self.width = width
        self.normalised = normalised
        self.use_bias = use_bias
        self.coverage = coverage
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.query_projection = self._projection(use_bias, "query_projection")
        self.key_projection = self._projection(False, "key_projection")

    def _projection(self, use_bias, name):
        return keras.layers.Dense(
            self.width,
            use_bias=use_bias,
            kernel_initializer=fresh(self.kernel_initializer),
            dtype=self.dtype_policy,
            name=name,
        )

    @property
    def reads_coverage(self):
        """Whether there is a coverage term."""
        return self.coverage

    def build(self, query_shape, memory_shape):
        self.query_projection.build(query_shape)
        self.key_projection.build(memory_shape)
        self.score_vector = self._vector("score_vector")
        if self.normalised:
            self.score_scale = self.add_weight(
                shape=(),
                initializer=keras.initializers.Constant(self.width**-0.5),
                name="score_scale",
            )
        if self.coverage:
            self.coverage_vector = self._vector("coverage_vector")

    def _vector(self, name):
        # As the one column of a matrix, for initializers that look at both sides of one.
        return self.add_weight(
            shape=(self.width, 1), initializer=fresh(self.kernel_initializer), name=name
        )

    def keys(self, memory, memory_valid):
        """Returns `U m` as `key`, float `[B, S, width]`."""
        return {"key": self.key_projection(memory)}

    def query_layers(self):
        """Returns the layer of `W q + b`."""
        return {"query": self.query_projection}

    def query_weights(self):
        """Returns v and, with coverage, w, float `[width]`."""
        vector = ops.cast(self.score_vector, "float32")[:, 0]
        if self.normalised:
            vector = self.score_scale * vector / ops.sqrt(ops.sum(ops.square(vector)))
        weights = {"score": ops.cast(vector, self.compute_dtype)}
        if self.coverage:
            weights["coverage"] = ops.cast(self.coverage_vector, self.compute_dtype)[:, 0]
        return weights

    def scores(self, query, projected, coverage, reads):
        """Returns the scores, float `[B, T, S]`."""
        hidden = reads.layers["query"](query)[:, :, None] + projected["key"][:, None]
        if coverage is not None:
            coverage = ops.cast(coverage, self.compute_dtype)[..., None]
            hidden = hidden + coverage * reads.weights["coverage"]
        return ops.sum(ops.tanh(hidden) * reads.weights["score"], axis=-1)
