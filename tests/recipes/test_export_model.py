import os
import pathlib
import subprocess
import sys

PROJECT = pathlib.Path(__file__).parents[2]


def test_a_folder_without_a_model_is_named(tmp_path):
    done = subprocess.run(
        [sys.executable, str(PROJECT / "recipes" / "export_model.py"), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYTHONPATH": str(PROJECT)},
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last == (
        f"export_model: run_folder must hold a finished run; {tmp_path} has no model.keras."
    )
