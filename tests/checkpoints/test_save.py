import json

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file

import keras_arch as ka
from tests.checkpoints.hand_made import CONFIG, in_any_order, tensors, write

once = pytest.mark.once


@pytest.fixture
def model():
    config = ka.models.GPT2Config(vocabulary_size=11, width=8, layers=1, heads=2, context_length=6)
    return ka.models.gpt2(config)


def refused(model, folder, *words, **options):
    with pytest.raises(ValueError, match=in_any_order(*words)):
        ka.checkpoints.save(model, folder, **options)


def read_config(folder):
    return json.loads((folder / "config.json").read_text())


def test_a_checkpoint_goes_back_as_it_came(tmp_path):
    given = tensors()
    (tmp_path / "given").mkdir()
    model = ka.checkpoints.load(write(tmp_path / "given", given))
    # A .keras file keeps no config of ours.
    model.save(tmp_path / "model.keras")
    model = keras.saving.load_model(tmp_path / "model.keras")
    folder = tmp_path / "new" / "saved"
    ka.checkpoints.save(model, folder, fields={"eos_token_id": 3})
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]
    assert [path.name for path in folder.parent.iterdir()] == ["saved"]
    found = load_file(folder / "model.safetensors")
    assert found.keys() == given.keys()
    for name, tensor in given.items():
        np.testing.assert_array_equal(found[name], tensor)
    config = read_config(folder)
    assert config.items() >= CONFIG.items()
    assert (config["architectures"], config["dtype"]) == (["GPT2LMHeadModel"], "float32")


@once
def test_shards_have_an_index(model, tmp_path):
    # The largest weights, of 1,024 bytes, have a file of their own.
    ka.checkpoints.save(model, tmp_path / "new", shard_bytes=1000)
    index = json.loads((tmp_path / "new" / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == 4 * model.count_params()
    files = {name: load_file(tmp_path / "new" / name) for name in set(index["weight_map"].values())}
    count = len(files)
    assert count > 3
    assert set(files) == {f"model-{i + 1:05}-of-{count:05}.safetensors" for i in range(count)}
    for name, held in files.items():
        assert set(held) == {x for x, place in index["weight_map"].items() if place == name}
        assert sum(x.nbytes for x in held.values()) <= 1000 or len(held) == 1
    again = ka.checkpoints.load(tmp_path / "new")
    for x, y in zip(again.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_weights_keep_their_precision(dtype, tmp_path):
    keras.config.set_dtype_policy(dtype)
    (tmp_path / "given").mkdir()
    model = ka.checkpoints.load(write(tmp_path / "given", tensors()))
    ka.checkpoints.save(model, tmp_path / "saved")
    assert read_config(tmp_path / "saved")["dtype"] == dtype
    found = load_file(tmp_path / "saved" / "model.safetensors")
    for name, tensor in tensors().items():
        assert found[name].dtype == dtype
        np.testing.assert_array_equal(found[name], tensor.astype(found[name].dtype))


@once
def test_a_mixed_policy_keeps_float32(tmp_path):
    keras.config.set_dtype_policy("mixed_bfloat16")
    (tmp_path / "given").mkdir()
    model = ka.checkpoints.load(write(tmp_path / "given", tensors()))
    ka.checkpoints.save(model, tmp_path / "saved")
    found = load_file(tmp_path / "saved" / "model.safetensors")
    np.testing.assert_array_equal(
        found["transformer.ln_f.bias"], tensors()["transformer.ln_f.bias"]
    )


@once
@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "other.safetensors"])
def test_nothing_is_written_over(name, model, tmp_path):
    (tmp_path / name).write_bytes(b"mine")
    refused(model, tmp_path, "must hold no checkpoint", name)
    assert (tmp_path / name).read_bytes() == b"mine"
    assert len(list(tmp_path.iterdir())) == 1


@once
def test_files_of_others_stay(model, tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    ka.checkpoints.save(model, tmp_path)
    names = ["config.json", "model.safetensors", "tokenizer.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


@once
def test_what_a_family_cannot_express_is_refused_by_name(tmp_path):
    shape = {"vocabulary_size": 11, "width": 8, "layers": 1, "heads": 2, "context_length": 6}
    bare = ka.models.gpt2(ka.models.GPT2Config(**shape, use_bias=False))
    refused(bare, tmp_path / "new", "gpt2 cannot express use_bias=False")
    elu = ka.models.gpt2(ka.models.GPT2Config(**shape, activation="elu"))
    refused(elu, tmp_path / "new", "activation")
    gru = ka.models.gru_lm(ka.models.GRULMConfig(vocabulary_size=11, width=4, layers=1))
    refused(gru, tmp_path / "new", "received gru_lm", "none of", "gpt2")
    assert not list(tmp_path.iterdir())


@once
def test_a_model_that_was_changed_is_refused(model, tmp_path):
    packed = ka.models.gpt2(
        ka.models.GPT2Config(vocabulary_size=11, width=8, layers=1, heads=2, context_length=6),
        packed=True,
    )
    refused(packed, tmp_path / "new", "as its builder", "segment_ids")
    model.get_layer("final_norm").epsilon = 0.5
    refused(model, tmp_path / "new", "as its builder", "final_norm")
    other = keras.Model(model.inputs, model.get_layer("embedded").output, name="gpt2")
    refused(other, tmp_path / "new", "as its builder", "block_0")


@once
def test_a_quantised_model_is_refused(model, tmp_path):
    model.quantize(
        config=keras.quantizers.Int8QuantizationConfig(activation_quantizer=None),
        filters=lambda layer: isinstance(layer, ka.layers.TokenEmbedding),
    )
    refused(model, tmp_path / "new", "tokens/table is int8", "before it is quantised")


@once
def test_bad_options_are_refused(model, tmp_path):
    refused(model, tmp_path / "new", "shard_bytes=0", shard_bytes=0)
    refused(model, tmp_path / "new", "'rwkv'", family="rwkv")
    refused(model, tmp_path / "new", "['n_embd']", fields={"n_embd": 8, "eos_token_id": 2})
