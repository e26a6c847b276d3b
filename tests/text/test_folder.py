import json

import pytest

from keras_arch.text.folder import read_folder, write_folder

pytestmark = pytest.mark.once


def test_settings_and_files_come_back(tmp_path):
    files = {"a.txt": b"\x00a\r\n", "b.txt": b""}
    write_folder(tmp_path / "new", {"x": [1]}, files)
    assert read_folder(tmp_path / "new", ["b.txt", "a.txt"]) == ({"x": [1]}, files)


def test_files_of_someone_else_need_no_checksum(tmp_path):
    (tmp_path / "tokenizer.json").write_text('{"x": 1}')
    (tmp_path / "a.txt").write_bytes(b"a")
    assert read_folder(tmp_path, ["a.txt"]) == ({"x": 1}, {"a.txt": b"a"})


def test_a_changed_file_is_named(tmp_path):
    write_folder(tmp_path, {}, {"a.txt": b"a\n"})
    (tmp_path / "a.txt").write_bytes(b"a\r\n")
    with pytest.raises(ValueError, match=r"a\.txt is damaged: .* \(3 bytes\)"):
        read_folder(tmp_path, ["a.txt"])


def test_checksums_of_another_kind_are_refused(tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps({"sha256": 3}))
    with pytest.raises(ValueError, match="an object under sha256; received 3"):
        read_folder(tmp_path, [])
