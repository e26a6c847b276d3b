import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_arch.training import Strategy
from keras_arch.training.workers import shares
from tests.training import tiny
from tests.training.cluster import run_workers

PROJECT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize(("workers", "replicas"), [(1, 1), (2, 1), (2, 2), (1, 4)])
def test_shares_are_the_rows_of_the_batch_in_order(workers, replicas):
    data = tf.data.Dataset.from_tensors(tiny.batch(4)).repeat(3)
    parts = [list(shares(data, worker, workers, replicas)) for worker in range(workers)]
    assert {len(own) for own in parts} == {3 * replicas}
    for number, batch in enumerate(data):
        rows = [own[number * replicas + r] for own in parts for r in range(replicas)]
        joined = tf.nest.map_structure(lambda *tensors: tf.concat(tensors, 0), *rows)
        tf.nest.map_structure(np.testing.assert_array_equal, joined, batch)


def test_without_a_cluster_a_model_trains_itself():
    model = tiny.model()
    assert Strategy("one").trainable(model) is model
    assert Strategy("one").all_agree(True) is True
    assert Strategy("one").all_agree(False) is False


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow only")
@pytest.mark.parametrize("kill", ["never", pytest.param("7", marks=pytest.mark.slow)])
def test_two_workers_also_killed_and_resumed_train_as_one_process(tmp_path, kill):
    """Clipping, unequal token counts, evaluation; the chief alone writes the folder."""
    child = ["-m", "tests.training.workers_child"]
    alone = [sys.executable, *child, str(tmp_path / "alone"), "alone", "never"]
    subprocess.run(alone, cwd=PROJECT, check=True, capture_output=True, timeout=120)

    def start(kill):
        folder = str(tmp_path / "cluster")
        return run_workers([[*child, folder, f"worker{i}", kill] for i in range(2)], PROJECT)

    if kill != "never":
        assert all(status != 0 for status, _ in start(kill))
        checkpoints = list((tmp_path / "cluster" / "checkpoints").iterdir())
        assert [path.name for path in checkpoints] == ["step-00000005"]
    for status, output in start("never"):
        assert status == 0, output
    names = ("alone", "worker0", "worker1")
    one, chief, other = (dict(np.load(tmp_path / f"{name}.npz")) for name in names)
    assert len(one) > 10
    for key, expected in one.items():
        np.testing.assert_array_equal(chief[key], other[key])
        np.testing.assert_allclose(chief[key], expected, rtol=0, atol=1e-6)
    logs = [
        np.genfromtxt(tmp_path / name / "log.csv", delimiter=",", skip_header=1)
        for name in ("alone", "cluster")
    ]
    assert logs[0].shape == (2, 5)
    np.testing.assert_allclose(logs[1], logs[0], rtol=1e-6)
