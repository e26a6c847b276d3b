import numpy as np

from keras_arch.layers import AddBias
from tests.layers import rows


def test_adds_one_vector_that_starts_at_zero():
    layer, x = AddBias(), rows.normal(2, 4, 5)
    np.testing.assert_array_equal(rows.run(layer, x), x)
    rows.randomize(layer)
    np.testing.assert_allclose(rows.run(layer, x), x + layer.get_weights()[0], atol=1e-6)
