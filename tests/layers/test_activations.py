import keras
import numpy as np
import pytest

from keras_arch.layers import gelu_tanh, get_activation
from tests.layers import rows
from tests.references import feedforward as reference

X = np.linspace(-5, 5, 101, dtype="float32")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gelu_tanh", reference.gelu_tanh),
        ("gelu", reference.gelu),
        ("silu", reference.silu),
        ("relu", reference.relu),
    ],
)
def test_names_are_the_functions_of_the_papers(name, expected):
    found = rows.run(get_activation(name), X)
    np.testing.assert_allclose(found, expected(X.astype("float64")), atol=1e-6)


def test_the_two_gelus_differ():
    assert abs(reference.gelu(X) - reference.gelu_tanh(X)).max() > 1e-4


def test_gelu_tanh_is_serialised_by_name():
    config = keras.saving.serialize_keras_object(gelu_tanh)
    assert keras.saving.deserialize_keras_object(config) is gelu_tanh


def test_takes_a_function():
    assert get_activation(gelu_tanh) is gelu_tanh


def test_refuses_an_unknown_name():
    with pytest.raises(ValueError, match="gelu_tan"):
        get_activation("gelu_tan")
