import keras
import numpy as np
import pytest

import keras_arch as ka
from tests.contracts.tiny import CONFIGS, build

TOKENS = np.array([[3, 5, 7, 2, 9, 4], [8, 1, 6, 2, 0, 0]], "int32")
INPUTS = {"token_ids": TOKENS, "valid": TOKENS > 0}


def outputs(model):
    result = model(INPUTS)
    result = result["hidden"] if isinstance(result, dict) else result
    return keras.ops.convert_to_numpy(result)[TOKENS > 0]


def train(model):
    inputs, targets, weights = ka.objectives.next_token(TOKENS, TOKENS > 0)
    optimizer, loss = keras.optimizers.Adam(0.05), ka.objectives.TokenCrossentropy()
    # XLA is not worth its compiling for two updates.
    model.compile(optimizer, loss, jit_compile=keras.backend.backend() == "jax")
    model.fit(inputs, targets, sample_weight=weights, epochs=2, verbose=0)


def values(model):
    return {v.path: keras.ops.convert_to_numpy(v) for v in model.variables}


@pytest.mark.parametrize("label", ["llama", "gpt2"])
def test_lora_is_trained_saved_and_merged(label, tmp_path):
    model = build(CONFIGS[label])
    before, weights = outputs(model), values(model)
    paths = ka.models.add_lora(model, rank=2, alpha=4)
    assert paths == [f"block_{i}/attention/self_attention/query_key_value" for i in range(2)]
    np.testing.assert_array_equal(outputs(model), before)
    trained = [v.path for v in model.trainable_variables]
    assert trained == [f"{path}/lora_kernel_{name}" for path in paths for name in "ab"]

    train(model)
    after = outputs(model)
    assert np.abs(after - before).max() > 1e-2
    updated = values(model)
    for path, value in weights.items():
        np.testing.assert_array_equal(updated[path], value, err_msg=path)
    generated = ka.generate(model, [[3, 5]], 4)

    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    assert values(loaded).keys() == weights.keys()
    np.testing.assert_allclose(outputs(loaded), after, rtol=0, atol=1e-5)
    for path in weights:
        expected = weights[path]
        if path.removesuffix("/kernel") in paths:
            host = path.removesuffix("kernel")
            a, b = (updated[f"{host}lora_kernel_{name}"] for name in "ab")
            expected = expected + 4 / 2 * (a @ b)
        np.testing.assert_allclose(values(loaded)[path], expected, rtol=0, atol=1e-6)

    merged = ka.models.merge_lora(model)
    assert len(merged.trainable_variables) == len(merged.variables)
    np.testing.assert_array_equal(ka.generate(merged, [[3, 5]], 4).token_ids, generated.token_ids)
    found = values(merged)
    assert found.keys() == weights.keys()
    for path in weights:
        np.testing.assert_allclose(found[path], values(loaded)[path], rtol=0, atol=1e-6)
    np.testing.assert_array_equal(outputs(model), after)


def test_a_decoder_with_lora_generates_as_it_scores():
    model = build(CONFIGS["llama"])
    ka.generate(model, [[3, 5]], 4)  # its programs are of the model without updates
    ka.models.add_lora(model, 2, ["*"])
    train(model)
    ids = [3, 5]
    for _ in range(4):
        row = np.array([ids], "int32")
        logits = model({"token_ids": row, "valid": row > 0})
        ids.append(int(keras.ops.convert_to_numpy(logits)[0, -1].argmax()))
    assert ka.generate(model, [[3, 5]], 4).token_ids[0].tolist() == ids[2:]


def quantised():
    model = build(CONFIGS["llama"])
    model.quantize(
        config=keras.quantizers.Int8QuantizationConfig(activation_quantizer=None),
        filters=lambda layer: isinstance(layer, keras.layers.Dense),
    )
    return model


def test_int8_matrices_take_an_update(tmp_path):
    model = quantised()
    before, weights = outputs(model), values(model)
    (path, _) = ka.models.add_lora(model, 2, ["*query_key_value"])
    np.testing.assert_array_equal(outputs(model), before)
    train(model)
    after, updated = outputs(model), values(model)
    assert np.abs(after - before).max() > 1e-2
    for name, value in weights.items():
        np.testing.assert_array_equal(updated[name], value, err_msg=name)

    # The base and the update apart: nothing is rounded again.
    ka.models.save_trained(model, tmp_path / "update.npz")
    again = quantised()
    ka.models.add_lora(again, 2, ["*query_key_value"])
    ka.models.load_trained(again, tmp_path / "update.npz")
    np.testing.assert_array_equal(outputs(again), after)

    # In one file the sum is rounded to int8, by a scale of its own for each column.
    model.save(tmp_path / "model.keras")
    loaded = values(keras.saving.load_model(tmp_path / "model.keras", compile=False))
    assert loaded.keys() == weights.keys()
    total = weights[f"{path}/kernel"] / weights[f"{path}/kernel_scale"]
    total = total + updated[f"{path}/lora_kernel_a"] @ updated[f"{path}/lora_kernel_b"]
    scale = 127 / np.abs(total).max(axis=0)
    np.testing.assert_allclose(loaded[f"{path}/kernel_scale"], scale, rtol=1e-4)
    rounded = loaded[f"{path}/kernel"] / loaded[f"{path}/kernel_scale"]
    assert (np.abs(rounded - total) <= 0.501 / scale).all()

    with pytest.raises(
        ValueError, match=r"merge before model\.quantize; received block_0/attention"
    ):
        ka.models.merge_lora(model)


def test_a_dense_layer_of_the_model_itself_is_merged():
    encoder = build(CONFIGS["distilbert"])
    model = ka.models.sequence_classification(encoder, 3)
    assert ka.models.add_lora(model, 2, ["classes"]) == ["classes"]
    model.get_layer("classes").lora_kernel_b.assign(np.ones((2, 3)))
    inputs = {"token_ids": TOKENS, "valid": TOKENS > 0}
    merged = ka.models.merge_lora(model)
    assert not merged.get_layer("classes").lora_enabled
    before = model.predict_on_batch(inputs)
    np.testing.assert_allclose(merged.predict_on_batch(inputs), before, atol=1e-5)
    # They share no weights: one is trained, the other stays.
    merged.compile("sgd", "mse", jit_compile=keras.backend.backend() == "jax")
    merged.fit(inputs, np.zeros((2, 3)), verbose=0)
    np.testing.assert_array_equal(model.predict_on_batch(inputs), before)


@pytest.mark.once
def test_a_merged_model_is_saved_as_a_checkpoint(tmp_path):
    model = build(CONFIGS["llama"])
    ka.models.add_lora(model, 2)
    train(model)
    ka.checkpoints.save(ka.models.merge_lora(model), tmp_path / "llama")
    loaded = ka.checkpoints.load(tmp_path / "llama")
    np.testing.assert_allclose(outputs(loaded), outputs(model), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: ka.models.add_lora(m, 2, ["*nowhere"]), r"layers that can .* '\*nowhere'"),
        (lambda m: ka.models.add_lora(m, 0), "rank must be a positive integer; received rank=0"),
        (lambda m: ka.models.add_lora(m, 2, alpha=-1), "alpha must be positive; received alpha=-1"),
        (ka.models.merge_lora, "has no updates of low rank to merge"),
    ],
)
def test_bad_arguments_are_named_and_nothing_is_changed(change, message):
    model = build(CONFIGS["gpt2"])
    with pytest.raises(ValueError, match=message):
        change(model)
    assert len(model.trainable_variables) == len(model.variables)


def test_updates_do_not_pile_up():
    model = build(CONFIGS["gpt2"])
    ka.models.add_lora(model, 2)
    with pytest.raises(ValueError, match="has updates of low rank already"):
        ka.models.add_lora(model, 2)
