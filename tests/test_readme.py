import re
from pathlib import Path

import keras
import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_its_python_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) == 12
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert "[[" in capsys.readouterr().out
    assert (tmp_path / "my_model").exists() == (keras.backend.backend() == "tensorflow")


@pytest.mark.parametrize("name", re.findall(r"(?:tools|recipes)/[a-z0-9_]+(?:\.py)?", README))
def test_the_files_it_names_exist(name):
    assert (ROOT / name).exists()
