import keras
import numpy as np
import pytest
from keras import ops

from keras_arch.layers import LayerNorm, RMSNorm
from tests.layers import oracle, rows
from tests.layers.gradients import gradients
from tests.references import norms as reference

KINDS = {
    "layer": lambda: LayerNorm(1e-3),
    "layer_without_offset": lambda: LayerNorm(1e-3, center=False),
    "rms": lambda: RMSNorm(1e-3),
}


def built(kind):
    layer = KINDS[kind]()
    layer.build((None, None, rows.WIDTH))
    return rows.randomize(layer)


@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_reference(kind):
    # Numbers near the size of epsilon, so that where it is added shows.
    layer, x = built(kind), 0.05 * rows.inputs() + 0.02
    np.testing.assert_allclose(rows.run(layer, x), oracle.norm(layer)(x), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_starts_as_the_plain_norm(kind):
    layer, x = KINDS[kind](), rows.inputs().astype("float64")
    plain = (
        reference.rms_norm if kind == "rms" else lambda *a: reference.layer_norm(*a[:2], 0, a[2])
    )
    np.testing.assert_allclose(rows.run(layer, rows.inputs()), plain(x, 1.0, 1e-3), atol=1e-5)


def of_weights(kind, weights, x):
    if kind == "rms":
        return reference.rms_norm(x, weights[0], 1e-3)
    return reference.layer_norm(x, weights[0], weights[1] if len(weights) == 2 else 0.0, 1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_equal_differences_of_the_reference(kind):
    layer, x = built(kind), 0.3 * rows.inputs()
    slope = rows.normal(*x.shape, seed=7)
    found = gradients(
        lambda x: ops.sum(layer(x) * ops.convert_to_tensor(slope)), layer.trainable_variables, [x]
    )
    values = [np.array(w, "float64") for w in [*layer.get_weights(), x]]
    step = 1e-5
    assert len(found) == len(values)
    for gradient, value in zip(found, values, strict=True):
        assert gradient.shape == value.shape
        expected = np.zeros(value.shape)
        for index in np.ndindex(*value.shape):
            ends = []
            for sign in (1, -1):
                kept = value[index]
                value[index] += sign * step
                ends.append((of_weights(kind, values[:-1], values[-1]) * slope).sum())
                value[index] = kept
            expected[index] = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_is_float32_inside_in_half_precision(kind):
    # The squares of these numbers overflow float16.
    keras.config.set_dtype_policy("mixed_float16")
    layer = KINDS[kind]()
    x = ops.cast(ops.convert_to_tensor(1000.0 * rows.inputs()), "float16")
    y = layer(x)
    assert keras.backend.standardize_dtype(y.dtype) == "float16"
    x = rows.to_numpy(x).astype("float64")
    expected = of_weights(kind, [1.0, 0.0], x)
    np.testing.assert_allclose(rows.to_numpy(y), expected, atol=2e-3)


@pytest.mark.parametrize("kind", [LayerNorm, RMSNorm])
@pytest.mark.parametrize("epsilon", [0.0, -1e-5])
def test_names_the_bad_argument(kind, epsilon):
    with pytest.raises(ValueError, match=f"epsilon={epsilon}"):
        kind(epsilon)
