"""The memory that attention of decoders is tried on, and the references of our layers."""

import numpy as np

from keras_arch import layers
from tests.layers import rows
from tests.references import context_attention
from tests.references.attention import softmax

LENGTH, WIDTH = 5, 6
#: Full; pads on the left; pads on the right and inside; pads only.
VALID = np.array([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1], [1, 0, 1, 0, 0], [0, 0, 0, 0, 0]], "bool")


def memory(width=WIDTH):
    """float32 [4, 5, width], NaN at the pads."""
    return np.where(VALID[..., None], rows.normal(rows.BATCH, LENGTH, width, seed=7), np.nan)


def built(layer, query_width, memory_width=WIDTH):
    """Builds an attention and gives it random weights."""
    layer.build((None, None, query_width), (None, None, memory_width))
    return rows.randomize(layer)


def _weights(layer):
    """The layer's weights, float64, by name, after that of the layer inside that holds it."""
    names = [w.path.rpartition(f"{layer.name}/")[2].replace("/", "_") for w in layer.weights]
    arrays = [np.array(w, "float64") for w in layer.get_weights()]
    return dict(zip(names, arrays, strict=True))


def weigher(layer):
    """What a built attention should give the real vectors of a row.

    Returns a function of a query [D], the vectors [n, M] and maybe their coverage [n].
    """
    named = _weights(layer)
    if isinstance(layer, layers.AdditiveAttention):
        matrices = (
            named["query_projection_kernel"],
            named["key_projection_kernel"],
            named["score_vector"][:, 0],
            named.get("score_scale"),
            named.get("query_projection_bias", 0.0),
        )

        def weigh(query, vectors, coverage=None):
            vector = named["coverage_vector"][:, 0] if coverage is not None else None
            scores = context_attention.additive(query, vectors, *matrices, coverage, vector)
            return softmax(scores)

    elif isinstance(layer, layers.LocationAttention):

        def weigh(query, vectors):
            matrices = named["place_scores_kernel"], named["place_scores_bias"]
            return softmax(context_attention.location(query, vectors, *matrices))

    elif isinstance(layer, layers.LocalAttention):

        def weigh(query, vectors):
            key = named.get("key_projection_kernel")
            place = named["place_projection_kernel"], named["place_score_kernel"][:, 0]
            scores = context_attention.multiplicative(query, vectors, key)
            return context_attention.local_weights(query, vectors, scores, layer.window, *place)

    else:

        def weigh(query, vectors):
            key = named.get("key_projection_kernel")
            return softmax(context_attention.multiplicative(query, vectors, key))

    return weigh
