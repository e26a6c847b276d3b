import json
import os
import pathlib
import subprocess
import sys

import keras
import pytest

from keras_arch.training import Strategy, strategy
from tests.training import tiny

BACKEND = keras.backend.backend()
PROJECT = pathlib.Path(__file__).parents[2]
WORKERS = '{"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 0}}'


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.delenv("TPU_NAME", raising=False)


@pytest.mark.parametrize("name", ["auto", "one"])
def test_one_cpu_is_one_replica(name):
    found = strategy(name)
    assert (found.name, found.replicas) == ("one", 1)
    with found.scope():
        assert tiny.model().count_params() == 11 * 8 + 16 + 8 * 11 + 11


@pytest.mark.skipif(BACKEND == "torch", reason="one device only on PyTorch")
def test_mirrored_on_one_cpu_builds_in_its_scope():
    found = strategy("mirrored")
    assert (found.name, found.replicas) == ("mirrored", 1)
    with found.scope():
        tiny.model()


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="received 'horovod'"):
        strategy("horovod")


@pytest.mark.parametrize("name", ["multiworker", "auto"])
def test_several_workers_are_named_where_they_cannot_be_joined(name, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", WORKERS)
    message = f"on the {BACKEND} backend; supported: 'one' and 'mirrored'"
    if BACKEND == "tensorflow":
        tiny.model()
        message = "must be done before TensorFlow is used: Collective ops must be configured at"
    with pytest.raises(ValueError, match=message):
        strategy(name)


def test_workers_without_tf_config_are_refused():
    message = "TF_CONFIG; it names 0" if BACKEND == "tensorflow" else f"on the {BACKEND}"
    with pytest.raises(ValueError, match=message):
        strategy("multiworker")


@pytest.mark.parametrize("text", ["{", "[1]", '{"cluster": 3}', '{"cluster": {"worker": 3}}'])
@pytest.mark.parametrize("name", ["multiworker", "auto"])
def test_a_malformed_tf_config_is_named(name, text, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ValueError, match="TF_CONFIG must be JSON"):
        strategy(name)


def test_a_tf_config_with_one_worker_is_one_device(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"worker": ["a:1"]}}')
    assert strategy("auto").name == "one"


def test_no_tpu_is_named():
    with pytest.raises(ValueError, match="tpu"):
        strategy("tpu")


@pytest.mark.skipif(BACKEND != "torch", reason="the others have it")
def test_torch_refuses_mirrored():
    with pytest.raises(ValueError, match="'mirrored' is not supported on the torch backend"):
        strategy("mirrored")


@pytest.mark.parametrize("batch_size", [0, 3, -2])
def test_a_batch_that_does_not_divide_is_refused(batch_size):
    with pytest.raises(ValueError, match=f"batch_size={batch_size} with 2 replicas"):
        Strategy("mirrored", 2).check(batch_size)
    Strategy("mirrored", 2).check(4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"micro_batches": 2}, "received micro_batches=2 with 2 replicas"),
        ({"steps_per_execution": 3}, "received steps_per_execution=3 with 2 replicas"),
        ({"precision": "float16"}, "first of 2 TensorFlow replicas only; use 'bfloat16'"),
    ],
)
def test_what_fails_on_tensorflow_replicas_is_refused_there(arguments, message):
    Strategy("one").check(4, **arguments)
    if BACKEND == "tensorflow":
        with pytest.raises(ValueError, match=message):
            Strategy("mirrored", 2).check(4, **arguments)
    else:
        Strategy("mirrored", 2).check(4, **arguments)


def test_compilation_follows_the_strategy():
    assert Strategy("one").jit_compile() == (BACKEND != "torch")
    assert Strategy("one").jit_compile(True) is True
    assert Strategy("one").jit_compile(False) is False
    assert Strategy("mirrored", 2).jit_compile() == (BACKEND == "jax")
    if BACKEND == "tensorflow":
        with pytest.raises(ValueError, match="jit_compile=True does not work with 2 replicas"):
            Strategy("mirrored", 2).jit_compile(True)


@pytest.mark.skipif(BACKEND == "torch", reason="one device only on PyTorch")
@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_two_replicas_with_unequal_token_counts_train_as_one(optimizer, tmp_path):
    """Also: a checkpoint written under replicas restores under replicas."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.training.replicas_child", optimizer, str(tmp_path)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"KERAS_BACKEND": BACKEND},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["replicas"] == 2
    assert found["weights"] <= 1e-6
    assert found["loss"] <= 1e-6
    assert found["nats"] <= 1e-6
    assert found["moved"] > 1e-3
