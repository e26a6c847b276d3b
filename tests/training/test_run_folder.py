import importlib
import json
import os
import pathlib
import subprocess
import sys

import pytest

from keras_arch.training import RunFolder

pytestmark = pytest.mark.once

PROJECT = pathlib.Path(__file__).parents[2]


def settings_in(folder):
    document = json.loads((folder / "settings.json").read_text())
    assert document["keras_arch_run"] == 1
    return document["settings"]


def begun(path, settings):
    """A run folder with a checkpoint, in use by nobody."""
    with RunFolder(path, settings) as folder:
        (folder / "checkpoints" / "step-00000002").mkdir()
    return path


def test_a_new_folder_holds_its_settings(tmp_path):
    folder = RunFolder(tmp_path / "a" / "b", {"width": 8, "data": "x"})
    assert settings_in(folder) == {"width": 8, "data": "x"}
    assert (folder / "checkpoints").is_dir()
    assert (folder / "events").is_dir()
    assert folder.report() is None


def test_the_same_settings_resume(tmp_path):
    with RunFolder(tmp_path, {"rates": (1, 2)}) as folder:
        (folder / "report.json").write_text('{"steps": 3}')
    assert RunFolder(tmp_path, {"rates": (1, 2)}).report() == {"steps": 3}


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"width": 16, "seed": 1}, "was started with width=8; received width=16"),
        ({"width": 8}, "was started with seed=1; received seed=None"),
        ({"width": 8, "seed": 1, "new": 2}, "was started with new=None; received new=2"),
    ],
)
def test_other_settings_are_refused(tmp_path, second, message):
    begun(tmp_path, {"width": 8, "seed": 1})
    with pytest.raises(ValueError, match=message):
        RunFolder(tmp_path, second)
    assert settings_in(tmp_path) == {"width": 8, "seed": 1}


def test_other_settings_are_taken_while_there_is_no_checkpoint(tmp_path):
    RunFolder(tmp_path, {"width": 8, "seed": 1}).close()
    RunFolder(tmp_path, {"width": 16})
    assert settings_in(tmp_path) == {"width": 16}


def test_overwrite_starts_again(tmp_path):
    with RunFolder(tmp_path / "run", {"width": 8}) as folder:
        (folder / "report.json").write_text("{}")
    folder = RunFolder(tmp_path / "run", {"width": 16}, overwrite=True)
    assert settings_in(folder) == {"width": 16}
    assert folder.report() is None


def test_foreign_files_are_never_touched(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match=r"holds other files \(thesis.txt\)"):
        RunFolder(tmp_path, {}, overwrite=True)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "run").write_text("")
    with pytest.raises(ValueError, match="is not a folder"):
        RunFolder(tmp_path / "run", {})


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_unwritable_place_is_named(overwrite):
    with pytest.raises(ValueError, match=r"run folder /proc/run cannot be written"):
        RunFolder("/proc/run", {}, overwrite)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(ValueError, match="cannot be written"):
        RunFolder(tmp_path, {})


def test_a_kill_before_the_settings_were_written_leaves_a_usable_folder(tmp_path):
    (tmp_path / ".writing-settings.json").write_text('{"wid')
    RunFolder(tmp_path, {"width": 8})
    assert settings_in(tmp_path) == {"width": 8}


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("content", ['{"width": 8}', '{"settings": {}}', "{}"])
def test_another_programs_settings_are_never_touched(tmp_path, content, overwrite):
    (tmp_path / "settings.json").write_text(content)
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match=r"settings.json was not written by a run"):
        RunFolder(tmp_path, {}, overwrite)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
    assert (tmp_path / "settings.json").read_text() == content


@pytest.mark.parametrize("content", ['{"keras_arch_run": 1, "sett', "[1]", ""])
@pytest.mark.parametrize("name", ["settings.json", "report.json"])
def test_a_damaged_file_is_named(tmp_path, name, content):
    begun(tmp_path, {"width": 8})
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=rf"{name} is damaged"):
        RunFolder(tmp_path, {"width": 8}).report()


def test_a_kill_while_the_earlier_run_is_removed_leaves_the_path_free(tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    def remove_some(path):
        (path / "settings.json").unlink()
        raise Killed

    begun(tmp_path / "run", {"width": 8})
    shutil = importlib.import_module("shutil")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", remove_some)
        with pytest.raises(Killed):
            RunFolder(tmp_path / "run", {"width": 16}, overwrite=True)
    with RunFolder(tmp_path / "run", {"width": 16}) as folder:
        assert settings_in(folder) == {"width": 16}
    RunFolder(tmp_path / "run", {"width": 32}, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


HOLD = """
import sys
from keras_arch.training.lock import FolderLock
import pathlib
lock = FolderLock(pathlib.Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("overwrite", [False, True])
def test_another_process_keeps_the_folder_until_it_ends(tmp_path, overwrite):
    pytest.importorskip("fcntl")
    run = begun(tmp_path / "run", {"width": 8})
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(run)],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(ValueError, match=r"run is in use by another process"):
            RunFolder(run, {"width": 8}, overwrite)
        assert (run / "checkpoints" / "step-00000002").exists()
        process.kill()
    RunFolder(run, {"width": 8}, overwrite)


def test_a_forgotten_folder_is_free_again(tmp_path):
    folder = RunFolder(tmp_path, {})
    with pytest.raises(ValueError, match="in use"):
        RunFolder(tmp_path, {})
    del folder
    RunFolder(tmp_path, {})
