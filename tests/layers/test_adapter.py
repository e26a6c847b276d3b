import keras
import numpy as np
import pytest

from keras_arch.layers import Adapter
from tests.layers import oracle, rows
from tests.references import feedforward as reference


def built(layer):
    layer.build((None, None, rows.WIDTH))
    return layer


@pytest.mark.parametrize("activation", ["relu", "gelu_tanh"])
def test_equals_the_reference(activation):
    layer = rows.randomize(built(Adapter(3, activation)))
    down, down_bias, up, up_bias = (
        np.array(w, "float64") for part in (layer.down, layer.up) for w in part.get_weights()
    )
    assert (down.shape, up.shape) == ((rows.WIDTH, 3), (3, rows.WIDTH))
    x = rows.inputs()
    expected = reference.adapter(
        x.astype("float64"),
        oracle.norm(layer.norm),
        down,
        up,
        getattr(reference, activation),
        down_bias,
        up_bias,
    )
    np.testing.assert_allclose(rows.run(layer, x), expected, atol=2e-5)


def test_a_new_one_changes_nothing_and_is_not_stuck():
    layer, x = built(Adapter(3, activation="gelu")), rows.inputs()
    np.testing.assert_array_equal(rows.run(layer, x), x)
    # A first matrix of zeros, too, would never learn.
    assert np.abs(keras.ops.convert_to_numpy(layer.down.kernel)).min() > 0


@pytest.mark.parametrize("width", [0, 2.5])
def test_names_the_bad_argument(width):
    with pytest.raises(ValueError, match=f"width must be a positive integer; .*width={width}"):
        Adapter(width)
