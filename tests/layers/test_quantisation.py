"""Keras's own int8 quantisation of layers that are made of layers."""

import dataclasses

import keras
import numpy as np
import pytest

import keras_arch as ka
from keras_arch.layers import TokenEmbedding
from tests.contracts.tiny import CONFIGS, V, build, logits, naive_greedy
from tests.layers import rows

TOKEN_IDS = np.random.default_rng(1).integers(0, V, (2, 12)).astype("int32")


def small(label):
    return dataclasses.replace(CONFIGS[label], layers=1)


def quantise(model, activations=False):
    options = {} if activations else {"activation_quantizer": None}
    model.quantize(
        config=keras.quantizers.Int8QuantizationConfig(**options),
        # Keras warns of every layer that has nothing to quantise.
        filters=lambda layer: isinstance(layer, keras.layers.Dense | TokenEmbedding),
    )
    return model


def int8_weights(model):
    return [w for w in model.weights if keras.backend.standardize_dtype(w.dtype) == "int8"]


@pytest.mark.parametrize(
    ("label", "activations"),
    [("gpt2", False), ("gpt2", True), ("gpt2-untied", True), ("llama-window", False)],
)
def test_every_matrix_is_found_and_a_reload_is_exact(label, activations, tmp_path):
    config = small(label)
    model = build(config)
    before = logits(model, TOKEN_IDS)
    quantise(model, activations)
    # Two of attention and two of feed-forward, the table, and a head of its own.
    assert len(int8_weights(model)) == 4 * config.layers + 1 + (not config.tied)
    after = logits(model, TOKEN_IDS)
    # Entries are off by up to 1/254 of the largest of their row or column.
    assert 0 < abs(after - before).max() < 0.1
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(logits(again, TOKEN_IDS), after)
    assert len(int8_weights(again)) == len(int8_weights(model))


def test_weights_alone_equal_a_model_of_the_rounded_weights():
    model, rounded = build(small("gpt2")), build(small("gpt2"))
    quantise(model)
    matrices = [w for w in rounded.weights if w.path.endswith(("kernel", "tokens/table"))]
    for weight in matrices:
        value = keras.ops.convert_to_numpy(weight)
        # A step of 1/127 of the largest entry: of each row of the table, each column of a matrix.
        axis = 1 if weight.path.endswith("table") else 0
        step = abs(value).max(axis=axis, keepdims=True) / 127
        weight.assign(np.round(value / step) * step)
    assert len(matrices) == 5
    np.testing.assert_allclose(logits(model, TOKEN_IDS), logits(rounded, TOKEN_IDS), atol=1e-4)


@pytest.mark.parametrize("activations", [False, True], ids=["weights", "all"])
def test_generates_before_and_after_and_from_a_file(activations, tmp_path):
    model, prompts = build(small("gpt2")), [[1, 2, 3], [4]]
    ka.generate(model, prompts, 8)
    quantise(model, activations)
    found = ka.generate(model, prompts, 8).token_ids
    np.testing.assert_array_equal(found, naive_greedy(model, prompts, 8))
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(ka.generate(again, prompts, 8).token_ids, found)


def test_the_table_scales_each_row_by_its_largest_entry():
    layer = TokenEmbedding(3, 2, scale=2.0, reverse_scale=0.5)
    layer.build((None, None))
    layer.set_weights([np.array([[0.25, -1.0], [0.005, 0.02], [0.0, 3.0]], "float32")])
    layer.quantize("int8")
    table, scale = (rows.to_numpy(x) for x in (layer.table, layer.table_scale))
    np.testing.assert_array_equal(table, [[32, -127], [32, 127], [0, 127]])
    np.testing.assert_allclose(scale, [127, 127 / 0.02, 127 / 3], rtol=1e-5)
    ids = np.array([[1, 0]], "int32")
    np.testing.assert_allclose(rows.run(layer, ids), 2 * (table / scale[:, None])[ids], rtol=1e-5)
    x = rows.normal(1, 2, 2)
    np.testing.assert_allclose(
        rows.run(layer, x, reverse=True), 0.5 * x @ (table / scale[:, None]).T, rtol=1e-5
    )


def test_other_modes_leave_the_table_in_float():
    layer = TokenEmbedding(3, 2)
    layer.build((None, None))
    with pytest.raises(NotImplementedError, match="int4"):
        layer.quantize("int4")
    assert rows.run(layer, np.array([[1]], "int32")).dtype == "float32"
