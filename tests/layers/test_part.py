"""What every layer promises."""

import json
import subprocess
import sys

import keras
import numpy as np
import pytest
from keras import ops

from keras_arch import layers
from keras_arch.layers.part import fresh
from tests.layers import rows
from tests.layers.examples import EXAMPLES, model_of


def test_every_public_layer_has_an_example():
    public = {
        name
        for name, value in vars(layers).items()
        if isinstance(value, type) and issubclass(value, keras.layers.Layer)
    }
    shared = {"AttentionDecoder", "ContextAttention", "Part", "Residual"}
    kerass_own = {"Dropout"}  # see test_dropout
    assert public - shared - kerass_own == set(EXAMPLES)


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_comes_back_from_its_config(name, policy):
    layer = EXAMPLES[name][0](name="given", dtype=policy)
    config = layer.get_config()
    again = type(layer).from_config(json.loads(json.dumps(config)))
    assert again.get_config() == config
    assert again.name == "given"
    assert again.dtype_policy.name == policy
    assert not again.built
    # Every constructor argument is an attribute and an entry.
    for argument in type(layer)._argument_names():
        assert argument in config
        assert hasattr(layer, argument)


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_saved_model_gives_equal_outputs(name, policy, tmp_path):
    keras.config.set_dtype_policy(policy)
    model, arrays = model_of(name)
    keras.config.set_dtype_policy("float32")
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.layers[-1].dtype_policy.name == policy
    assert loaded.layers[-1].get_config() == model.layers[-1].get_config()
    inputs = [ops.convert_to_tensor(array) for array in arrays]
    found, expected = loaded(inputs), model(inputs)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(rows.to_numpy(found), rows.to_numpy(expected))


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_symbolic_output_tells_shape_and_type(name):
    model, arrays = model_of(name)
    found = model([ops.convert_to_tensor(array) for array in arrays])
    assert tuple(model.output.shape)[1:] == tuple(found.shape)[1:]
    assert model.output.dtype == keras.backend.standardize_dtype(found.dtype)


@pytest.mark.parametrize("name", ["SelfAttention", "FeedForward", "LayerNorm"])
def test_the_symbolic_output_has_the_type_of_the_policy(name):
    model, arrays = model_of(name, dtype="mixed_bfloat16")
    found = model([ops.convert_to_tensor(array) for array in arrays])
    assert model.output.dtype == keras.backend.standardize_dtype(found.dtype)


def test_a_fresh_process_loads_all_layers_without_custom_objects(tmp_path):
    for name in ("DecoderBlock", "ParallelBlock", "PostNorm"):
        model_of(name)[0].save(tmp_path / f"{name}.keras")
    code = (
        "import sys, pathlib, keras, keras_arch\n"
        "for path in sorted(pathlib.Path(sys.argv[1]).glob('*.keras')):\n"
        "    print(type(keras.saving.load_model(path).layers[-1]).__name__)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["DecoderBlock", "ParallelBlock", "PostNorm"]


def test_parts_are_the_layers_among_the_arguments():
    layer = EXAMPLES["DecoderBlock"][0]()
    assert layer.parts() == [layer.attention, layer.feedforward]
    layer = EXAMPLES["BahdanauDecoder"][0]()
    assert layer.parts() == [layer.attention, *layer.cells]
    assert EXAMPLES["TokenPositions"][0]().parts() == []


def test_a_fresh_initializer_draws_other_numbers():
    given = keras.initializers.RandomNormal()
    first, second = (rows.to_numpy(fresh(given)((4, 4))) for _ in range(2))
    assert abs(first - second).min() > 0


def test_a_fresh_initializer_keeps_a_given_seed():
    # Whoever passes a seed asked for these very numbers.
    given = keras.initializers.RandomNormal(seed=3)
    np.testing.assert_array_equal(rows.to_numpy(fresh(given)((4, 4))), rows.to_numpy(given((4, 4))))
