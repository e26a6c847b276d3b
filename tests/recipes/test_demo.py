"""tools/demo, and the SavedModel reader that it ends with."""

import pathlib
import subprocess

import pytest

pytestmark = pytest.mark.once

TOOLS = pathlib.Path(__file__).parents[2] / "tools"


@pytest.mark.parametrize("flag", [["--run-folder", "x"], ["--run-folder=x"], ["--run_folder", "x"]])
def test_another_run_folder_is_refused(flag):
    command = ["bash", str(TOOLS / "demo"), "--steps", "4", *flag]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "runs/demo; for another one use recipes/train_gpt.py" in done.stderr


@pytest.fixture
def description(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    return pytest.importorskip("saved_model.description")


# Field 2 of a SavedModel, its graphs, as a number; in a graph field 1, its information, as one;
# and a graph tagged "x" whose field 5, the signatures, is one.
@pytest.mark.parametrize(
    "content", [b"\x10\x01", b"\x12\x02\x08\x01", b"\x12\x07\x0a\x03\x22\x01x\x28\x01"]
)
def test_bytes_of_another_kind_are_no_saved_model(description, tmp_path, content):
    (tmp_path / "saved_model.pb").write_bytes(content)
    with pytest.raises(ValueError, match=r"saved_model.pb cannot be read: not a protocol buffer"):
        description.read_description(tmp_path, "x")
