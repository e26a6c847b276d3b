import sys

import keras
import numpy as np
import pytest

import keras_arch as ka
from tests.checkpoints.hand_made import (
    V,
    in_any_order,
    tensors,
    write,
    write_index,
    write_raw,
    write_shards,
)

once = pytest.mark.once


def weights(model):
    return {weight.path: keras.ops.convert_to_numpy(weight) for weight in model.weights}


def refused(source, *words, **options):
    with pytest.raises(ValueError, match=in_any_order(*words)):
        ka.checkpoints.load(source, **options)


@pytest.mark.parametrize("prefix", ["transformer.", ""])
def test_weights_are_the_tensors(prefix, tmp_path):
    given = tensors(prefix)
    mask = np.tril(np.ones((1, 1, 6, 6), "float32"))
    model, config, report = ka.checkpoints.read(
        write(tmp_path, given | {f"{prefix}h.0.attn.bias": mask})
    )
    assert config == ka.models.GPT2Config(
        vocabulary_size=V, width=8, layers=1, heads=2, context_length=6
    )
    found = weights(model)
    assert report.read.keys() == found.keys()
    for path, tensor in {
        "tokens/table": "wte.weight",
        "position_table/table": "wpe.weight",
        "block_0/attention/norm/offset": "h.0.ln_1.bias",
        "block_0/attention/self_attention/query_key_value/kernel": "h.0.attn.c_attn.weight",
        "block_0/feedforward/feedforward/down/bias": "h.0.mlp.c_proj.bias",
        "final_norm/scale": "ln_f.weight",
    }.items():
        np.testing.assert_array_equal(found[path], given[prefix + tensor])
        assert report.read[path] == (prefix + tensor,)
    assert report.ignored == {f"{prefix}h.0.attn.bias": "the causal mask, a constant"}
    assert report.fields == {"eos_token_id": 3}
    for line in ("gpt2: 16 weights", f"tokens/table <- {prefix}wte.weight", "eos_token_id=3"):
        assert line in str(report)


@once
def test_shards_and_single_files_are_read(tmp_path):
    given = list(tensors().items())
    folder = write_shards(tmp_path, dict(given[:5]), dict(given[5:]))
    files = [folder / "0.safetensors", folder / "1.safetensors"]
    for source in (folder, str(folder), files):
        found = weights(ka.checkpoints.load(source))
        np.testing.assert_array_equal(found["tokens/table"], given[0][1])
        np.testing.assert_array_equal(found["final_norm/offset"], given[-1][1])


@once
def test_half_precision_is_read_as_it_is(tmp_path):
    given = tensors()
    expected = {name: x.astype("float16").astype("float32") for name, x in given.items()}
    # bfloat16 is the upper half of a float32.
    bits = given["transformer.wpe.weight"].view("uint32") >> 16
    expected["transformer.wpe.weight"] = (bits << 16).astype("uint32").view("float32")
    parts = {name: ("F16", x.astype("float16")) for name, x in given.items()}
    parts["transformer.wpe.weight"] = ("BF16", bits.astype("uint16"))
    write(tmp_path, {})
    write_raw(tmp_path / "model.safetensors", parts)
    found = weights(ka.checkpoints.load(tmp_path))
    assert found["tokens/table"].dtype == "float32"
    for path, tensor in {"tokens/table": "wte", "position_table/table": "wpe"}.items():
        np.testing.assert_array_equal(found[path], expected[f"transformer.{tensor}.weight"])


@once
def test_all_faults_are_named_at_once(tmp_path):
    given = tensors()
    del given["transformer.ln_f.bias"]
    given["transformer.h.1.ln_1.bias"] = np.zeros(8, "float32")
    given["transformer.wpe.weight"] = np.zeros((5, 8), "float32")
    given["transformer.h.0.ln_2.bias"] = np.zeros(8, "int8")
    refused(
        write(tmp_path, given),
        "transformer.ln_f.bias is missing, for our final_norm/offset",
        "transformer.h.1.ln_1.bias (8,) has no place here",
        "wpe.weight (5, 8) must be (6, 8), for our position_table/table (6, 8)",
        "transformer.h.0.ln_2.bias is I8",
    )


@once
def test_a_tied_head_must_be_the_table(tmp_path):
    given = tensors()
    table = given["transformer.wte.weight"]
    report = ka.checkpoints.read(write(tmp_path, given | {"lm_head.weight": table})).report
    assert report.ignored == {"lm_head.weight": "the head is the table"}
    other = write(tmp_path, given | {"lm_head.weight": table + 1})
    refused(other, "lm_head.weight must equal transformer.wte.weight", "tie_word_embeddings=false")
    write(tmp_path, given | {"lm_head.weight": table[1:]})
    refused(tmp_path, "lm_head.weight must equal transformer.wte.weight")
    write(tmp_path, given | {"lm_head.weight": table + 1}, tie_word_embeddings=False)
    found = weights(ka.checkpoints.load(tmp_path))
    np.testing.assert_array_equal(found["head/projection/kernel"], (table + 1).T)
    write(tmp_path, given, tie_word_embeddings=False)
    refused(tmp_path, "lm_head.weight is missing, for our head/projection/kernel")
    # Some writers keep another name of what is shared.
    del given["transformer.wte.weight"]
    loaded = ka.checkpoints.read(write(tmp_path, given | {"lm_head.weight": table}))
    np.testing.assert_array_equal(weights(loaded.model)["tokens/table"], table)
    assert loaded.report.read["tokens/table"] == ("lm_head.weight",)
    assert not loaded.report.ignored


@once
def test_damaged_files_are_refused(tmp_path):
    path = write(tmp_path, tensors()) / "model.safetensors"
    whole = path.read_bytes()
    for damaged in (whole[:-4], whole[:100], b"", b"\xff" * 64):
        path.write_bytes(damaged)
        refused(tmp_path, "model.safetensors is no whole safetensors file")
    path.write_bytes(whole)
    (tmp_path / "config.json").write_text("{")
    refused(tmp_path, "config.json must be a JSON file")
    (tmp_path / "config.json").unlink()
    refused(tmp_path, "there is no", "config.json")


@once
def test_bad_indices_are_refused(tmp_path):
    given = tensors()
    folder = write_shards(tmp_path, given, given)
    both = [folder / "0.safetensors", folder / "1.safetensors"]
    refused(both, "transformer.h.0.attn.c_attn.bias is in", "and again in")
    (tmp_path / "1.safetensors").unlink()
    refused(tmp_path, "is not complete: there is no", "1.safetensors")
    for name in ("../0.safetensors", "/etc/0.safetensors", "a/0.safetensors", "..", 3):
        write_index(tmp_path, {"transformer.wte.weight": name})
        refused(tmp_path, "must name files of its own folder", repr(name))
    write_index(tmp_path, {})
    refused(tmp_path, "must have a weight_map")


@once
@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "consolidated.00.pth"])
def test_pickled_files_are_refused(name, tmp_path):
    (tmp_path / name).write_bytes(b"anything")
    for source in (tmp_path, tmp_path / name):
        refused(source, name, "only .safetensors", "save_pretrained")


@once
def test_nothing_to_read_is_refused(tmp_path):
    refused(tmp_path, "model.safetensors", str(tmp_path))
    refused([], "source=[]")


@once
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"model_type": "rwkv"}, ["gpt2", "'rwkv'"]),
        ({"scale_attn_by_inverse_layer_idx": True}, ["scale_attn_by_inverse_layer_idx=True"]),
        ({"scale_attn_weights": False}, ["scale_attn_weights=False"]),
        ({"add_cross_attention": True}, ["add_cross_attention=True"]),
        ({"quantization_config": {"bits": 4}}, ["quantization_config={'bits': 4}"]),
        ({"pruned_heads": {"0": [1]}}, ["pruned_heads={'0': [1]}"]),
        ({"activation_function": "quick_gelu"}, ["activation_function='quick_gelu'"]),
        ({"n_embd": None}, ["must have n_embd"]),
        ({"n_embd": 9}, ["width=9, heads=2"]),
        ({"alibi": True}, ["not known here: alibi=True", "ignore_fields=['alibi']"]),
    ],
)
def test_a_config_that_says_something_else_is_refused(fields, words, tmp_path):
    refused(write(tmp_path, tensors(), **fields), *words)


@once
def test_options(tmp_path):
    write(tmp_path, tensors(), alibi=False, model_type="other", reorder_and_upcast_attn=True)
    loaded = ka.checkpoints.read(tmp_path, "gpt2", dropout=0.25, ignore_fields=["alibi"])
    assert loaded.config.dropout == 0.25
    assert loaded.model.get_layer("block_0").attention.dropout == 0.25
    refused(tmp_path, "'gpt2'", "'bert3'", family="bert3")


@once
def test_without_safetensors_it_says_what_to_install(monkeypatch, tmp_path):
    write(tmp_path, tensors())
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ImportError, match=r"keras-arch\[checkpoints\]"):
        ka.checkpoints.load(tmp_path)
