import pytest

from keras_arch.training import RunFolder, Strategy, shared_run_folder

pytestmark = pytest.mark.once


class Cluster(Strategy):
    """A worker beside the chief, whose answer is given."""

    def all_agree(self, ok=True):
        assert ok
        return self.distribution


def test_alone_it_is_a_run_folder(tmp_path):
    with shared_run_folder(Strategy("one"), tmp_path / "run", {"seed": 3}) as folder:
        assert type(folder) is RunFolder
        assert folder.settings == {"seed": 3}
        with pytest.raises(ValueError, match="in use by another process"):
            RunFolder(tmp_path / "run", {"seed": 3})
    RunFolder(tmp_path / "run", {"seed": 3}).close()


def test_other_workers_read_the_chiefs_folder(tmp_path):
    other = Cluster("multiworker", 2, distribution=True, chief=False)
    with RunFolder(tmp_path / "run", {"seed": 3}) as chief:
        (chief / "report.json").write_text('{"steps": 4}')
        before = sorted((tmp_path / "run").rglob("*"))
        with shared_run_folder(other, tmp_path / "run", {"size": (1, 2)}) as folder:
            assert folder.report() == {"steps": 4}
            assert folder.has_begun()
            assert folder / "log.csv" == chief / "log.csv"
            assert folder.settings == {"size": [1, 2]}
        assert sorted((tmp_path / "run").rglob("*")) == before


def test_other_workers_name_a_folder_that_the_chief_cannot_open(tmp_path):
    other = Cluster("multiworker", 2, distribution=False, chief=False)
    with (
        pytest.raises(ValueError, match="chief worker could not open run folder"),
        shared_run_folder(other, tmp_path / "missing", {}),
    ):
        pass
    assert not (tmp_path / "missing").exists()


def test_the_chief_says_that_it_cannot_open_the_folder(tmp_path):
    said = []

    class Chief(Strategy):
        def all_agree(self, ok=True):
            said.append(ok)
            return ok

    (tmp_path / "run").write_text("a file")
    with (
        pytest.raises(ValueError, match="is not a folder"),
        shared_run_folder(Chief("multiworker", 2), tmp_path / "run", {}),
    ):
        pass
    assert said == [False]
