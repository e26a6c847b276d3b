"""tools/compare_runs.py, run as its user runs it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "compare_runs.py"

pytestmark = pytest.mark.once


def test_runs_without_characters_are_compared_by_their_loss(tmp_path):
    folders = [tmp_path / name for name in ("scratch", "finetuned")]
    for folder, loss in zip(folders, (3.0, 2.5), strict=True):
        folder.mkdir()
        report = {"parameters": 10, "steps": 4, "train_seconds": 1.0, "validation_loss": loss}
        (folder / "report.json").write_text(json.dumps(report | {"corpus": {"sha256": "0"}}))
        rows = ["step,train_loss,validation_loss", "1,5,", f"2,4,{loss + 1}", f"4,3,{loss}"]
        (folder / "log.csv").write_text("\n".join(rows) + "\n")
    pictures = [tmp_path / "table.png", tmp_path / "curves.png"]
    command = [sys.executable, SCRIPT, *folders, "--plot", pictures[0], "--curves", pictures[1]]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    _, first, second = done.stdout.splitlines()
    assert first.split() == ["finetuned", "10", "4", "1", "2.500", "-"]
    assert second.split() == ["scratch", "10", "4", "1", "3.000", "-"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
