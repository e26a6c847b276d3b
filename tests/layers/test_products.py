import keras
import numpy as np
import pytest
from keras import ops

from keras_arch.layers.products import multiply_rows


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 4, 3), (0, 4, 3)])
def test_equals_the_product(shape):
    random = np.random.default_rng(0)
    x, matrix = random.normal(size=shape), random.normal(size=(3, 5))
    found = multiply_rows(*(ops.convert_to_tensor(a, "float32") for a in (x, matrix)))
    assert tuple(found.shape) == (*shape[:-1], 5)
    np.testing.assert_allclose(ops.convert_to_numpy(found), x @ matrix, atol=1e-6)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="only there are shapes open")
def test_keeps_what_is_known_of_an_open_shape():
    import tensorflow as tf

    spec = tf.TensorSpec([None, 4, 3])
    multiply = tf.function(lambda x: multiply_rows(x, tf.ones((3, 5))), input_signature=[spec])
    assert multiply.get_concrete_function().output_shapes.as_list() == [None, 4, 5]
