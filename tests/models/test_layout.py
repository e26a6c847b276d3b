import json
import pathlib
import subprocess
import sys

import keras
import pytest

import keras_arch as ka

PROJECT = pathlib.Path(__file__).parents[2]
GPT2 = {"vocabulary_size": 19, "width": 24, "layers": 1, "heads": 6, "context_length": 8}
BLOCK = "block_0/attention/self_attention"
#: What one of four devices holds, of widths 32 and 128 (48), 8 heads of 4.
SHARDS = {
    "gpt2": {
        f"{BLOCK}/query_key_value/kernel": [32, 96 // 4],
        f"{BLOCK}/query_key_value/bias": [96 // 4],
        f"{BLOCK}/output_projection/kernel": [32 // 4, 32],
        f"{BLOCK}/output_projection/bias": [32],
        "block_0/feedforward/feedforward/up/kernel": [32, 128 // 4],
        "block_0/feedforward/feedforward/down/kernel": [128 // 4, 32],
        "tokens/table": [19, 32],  # 19 does not divide
        "position_table/table": [8, 32],
    },
    "llama": {
        f"{BLOCK}/query_key_value/kernel": [32, (32 + 2 * 16) // 4],
        f"{BLOCK}/query_key_value/bias": [(32 + 2 * 16) // 4],
        "block_0/feedforward/feedforward/up/kernel": [32, 96 // 4],
        "block_0/feedforward/feedforward/down/kernel": [48 // 4, 32],
        "tokens/table": [24 // 4, 32],
        "head/projection/kernel": [32, 24 // 4],
        "final_norm/scale": [32],
    },
}


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="keras.distribution is JAX's")
@pytest.mark.parametrize("label", [pytest.param("gpt2", marks=pytest.mark.slow), "llama"])
def test_eight_devices_train_as_one(label):
    done = subprocess.run(
        [sys.executable, "-m", "tests.models.layout_child", label],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["rows"] <= 1e-6
    assert found["heads"] <= 1e-6
    assert found["moved"] > 1e-3
    assert {path: found["shards"][path] for path in SHARDS[label]} == SHARDS[label]


def mesh(devices, names=("batch", "model")):
    """A mesh without devices of its own: only its shape counts."""
    shape = (1, devices)
    return keras.distribution.DeviceMesh(shape, names, [f"cpu:{i}" for i in range(devices)])


@pytest.mark.once
@pytest.mark.parametrize(
    ("config", "devices", "message"),
    [
        (ka.models.GPT2Config(**GPT2), 4, "divide heads; received 4 devices, heads=6"),
        (
            ka.models.LlamaConfig(hidden_width=24, key_value_heads=2, **GPT2),
            3,
            "divide key_value_heads; received 3 devices, key_value_heads=2",
        ),
        (
            ka.models.GPT2Config(hidden_width=25, **GPT2),
            2,
            "divide hidden_width; received 2 devices, hidden_width=25",
        ),
        (ka.models.LSTMLMConfig(vocabulary_size=9, width=8, layers=1), 2, "that of a Transformer"),
    ],
)
def test_what_does_not_divide_is_named(config, devices, message):
    with pytest.raises(ValueError, match=message):
        ka.models.layout_map(config, mesh(devices))


@pytest.mark.once
def test_an_unknown_axis_is_named():
    with pytest.raises(ValueError, match=r"\['a', 'b'\].*axis='model'"):
        ka.models.layout_map(ka.models.GPT2Config(**GPT2), mesh(2, ["a", "b"]))


@pytest.mark.once
@pytest.mark.parametrize("name", ["t5", "bart", "transformer", "bert", "electra"])
def test_every_matrix_of_every_block_is_split(name):
    config = next(iter(ka.models.SIZES[name].values()))
    layouts = ka.models.layout_map(config, mesh(2))
    paths = [variable.path for variable in ka.models.outline(config).trainable_variables]
    inside = [path for path in paths if "attention/" in path or "feedforward/" in path]
    matrices = [path for path in inside if path.endswith("/kernel")]
    assert len(matrices) > 8
    assert set(matrices) <= set(layouts)
