import pytest

from keras_arch.training import files

pytestmark = pytest.mark.once


def test_replaces_the_content(tmp_path):
    path = tmp_path / "a.txt"
    files.write_text(path, "one\n")
    files.write_text(path, "zwei ü\n")
    assert path.read_bytes() == "zwei ü\n".encode()
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_the_old_content(tmp_path):
    path = tmp_path / "a.txt"
    files.write_text(path, "old")

    def write_half():
        with files.replacing(path) as temporary:
            temporary.write_text("half")
            assert path.read_text() == "old"
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
