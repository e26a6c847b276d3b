import pathlib
import signal
import subprocess
import sys

import numpy as np
import pytest

PROJECT = pathlib.Path(__file__).parents[2]


def train(folder, kill="never"):
    """Runs the training in a process of its own; returns its exit status."""
    command = [sys.executable, "-m", "tests.training.training_child", str(folder), kill]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken")
    assert train(folder) == 0
    return folder


def check_same(folder, unbroken):
    """Weights, dropout seeds, optimizer state and log equal the unbroken run's, bit for bit."""
    with np.load(folder / "end.npz") as ours, np.load(unbroken / "end.npz") as theirs:
        assert ours.files == theirs.files
        assert len(ours.files) > 10
        for name in ours.files:
            np.testing.assert_array_equal(ours[name], theirs[name])
    assert (folder / "log.csv").read_bytes() == (unbroken / "log.csv").read_bytes()


def test_log_has_each_row_once(unbroken):
    lines = (unbroken / "log.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["step", "2", "4", "6", "8", "10", "12"]
    assert [bool(line.split(",")[3]) for line in lines[1:]] == [False, True] * 3


def test_a_run_killed_again_and_again_ends_the_same(tmp_path, unbroken):
    """While the second checkpoint is written, its weights but not its progress; in mid-interval."""
    assert train(tmp_path, "os.fsync:12") == -signal.SIGKILL
    names = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert names == {"step-00000004", ".writing-step-00000008"}
    assert train(tmp_path, "batch:6") == -signal.SIGKILL
    assert train(tmp_path) == 0
    check_same(tmp_path, unbroken)


@pytest.mark.slow
@pytest.mark.parametrize("function", ["os.replace", "os.fsync", "shutil.rmtree"])
def test_every_moment_of_writing(tmp_path, unbroken, function):
    """Each call of the file functions in turn is where the process dies."""
    for call in range(1, 100):
        folder = tmp_path / str(call)
        if train(folder, f"{function}:{call}") == 0:
            break
        assert train(folder) == 0
        check_same(folder, unbroken)
    assert call > 3


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [6, 7, 8, 9, 10, 11, 12])
def test_a_kill_from_outside_at_any_moment(tmp_path, unbroken, seconds):
    command = [sys.executable, "-m", "tests.training.training_child", str(tmp_path), "never"]
    process = subprocess.Popen(command, cwd=PROJECT)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert train(tmp_path) == 0
    check_same(tmp_path, unbroken)
