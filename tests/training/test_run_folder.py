import json
import os

import pytest

from keras_arch.training import RunFolder


def test_a_new_folder_holds_its_settings(tmp_path):
    folder = RunFolder(tmp_path / "a" / "b", {"width": 8, "data": "x"})
    assert json.loads((folder / "settings.json").read_text()) == {"width": 8, "data": "x"}
    assert (folder / "checkpoints").is_dir()
    assert (folder / "events").is_dir()
    assert folder.report() is None


def test_the_same_settings_resume(tmp_path):
    folder = RunFolder(tmp_path, {"rates": (1, 2)})
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
    RunFolder(tmp_path, {"width": 8, "seed": 1})
    with pytest.raises(ValueError, match=message):
        RunFolder(tmp_path, second)
    assert json.loads((tmp_path / "settings.json").read_text()) == {"width": 8, "seed": 1}


def test_overwrite_starts_again(tmp_path):
    folder = RunFolder(tmp_path / "run", {"width": 8})
    (folder / "report.json").write_text("{}")
    folder = RunFolder(tmp_path / "run", {"width": 16}, overwrite=True)
    assert json.loads((folder / "settings.json").read_text()) == {"width": 16}
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
    assert json.loads((tmp_path / "settings.json").read_text()) == {"width": 8}
