import keras
import numpy as np
import pytest
from keras import ops

import keras_arch as ka


@pytest.mark.parametrize("jit_compile", [False, "auto"])
def test_a_token_that_occurs_twice_has_one_gradient(jit_compile):
    """Adam's first step moves a weight by the learning rate whatever its gradient's size.

    Two rows for one token, squared before they are added, move it by sqrt(2) times that.
    """
    token_ids = keras.Input((None,), dtype="int32")
    embedding = ka.layers.TokenEmbedding(5, 3)
    positions = ka.layers.LearnedPositions(5, 3)
    model = keras.Model(token_ids, embedding(token_ids) + positions(token_ids))
    before = [ops.convert_to_numpy(w) for w in model.weights]
    model.compile(keras.optimizers.Adam(0.1), lambda y, z: ops.sum(z), jit_compile=jit_compile)
    batch = np.array([[1, 1, 2, 1]], "int32")
    model.fit(batch, np.zeros((1, 4, 3), "float32"), verbose=0)
    moved = np.zeros((5, 3), "float32")
    moved[[1, 2]] = 0.1
    for weight, start in zip(model.weights, before, strict=True):
        np.testing.assert_allclose(start - ops.convert_to_numpy(weight), moved, atol=1e-6)
