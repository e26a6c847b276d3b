import os

import pytest

from keras_arch.text.files import (
    format_json,
    parse_json,
    read_blocks,
    read_json,
    read_text,
    split_lines,
    training_blocks,
    write_bytes,
    write_json,
)

pytestmark = pytest.mark.once


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 7, 100])
@pytest.mark.parametrize(
    "text", ["", "one line", "a\r\nb\n\n\nc", "\u4e2d\u6587\U0001f468" * 9, "\ufeffa\n" * 20]
)
def test_blocks_joined_are_the_text(tmp_path, text, block_bytes):
    path = tmp_path / "text"
    path.write_bytes(text.encode())
    blocks = list(read_blocks(path, block_bytes))
    assert "".join(blocks) == text
    assert all(0 < len(block.encode()) <= 2 * block_bytes + 3 for block in blocks)


def test_blocks_end_with_lines(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"0123\n" * 100)
    assert list(read_blocks(path, 7)) == ["0123\n0123\n"] * 50
    assert list(read_blocks(path, 10)) == ["0123\n0123\n"] * 50


@pytest.mark.parametrize("block_bytes", [1, 4, 1000])
@pytest.mark.parametrize(
    ("content", "byte", "offset"),
    [
        (b"good\nbad \xff\n", "ff", 9),
        (b"ab\n\xc3", "c3", 3),
        ("é\n".encode() * 9 + b"\xe4\xb8a", "e4", 27),
    ],
)
def test_a_file_that_is_not_utf8_is_named_with_the_offset(
    tmp_path, content, byte, offset, block_bytes
):
    path = tmp_path / "latin.txt"
    path.write_bytes(content)
    with pytest.raises(
        ValueError, match=rf"latin\.txt must be UTF-8.*0x{byte} at offset {offset}\."
    ):
        list(read_blocks(path, block_bytes))


def test_texts_are_joined_in_order(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text(name)
    assert read_text([tmp_path / "b", tmp_path / "a"]) == "ba"


def test_no_text_is_refused(tmp_path):
    (tmp_path / "empty.txt").touch()
    with pytest.raises(ValueError, match=r"must hold some text; received .*empty\.txt"):
        read_text([tmp_path / "empty.txt"])


def test_json_comes_back(tmp_path):
    value = {"a": "\u4e2d\u2028\n", "b": [1, None]}
    write_json(tmp_path / "new" / "file.json", value)
    assert read_json(tmp_path / "new" / "file.json") == value


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_bytes(path, b"old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_training_texts_and_files_are_mixed(tmp_path):
    (tmp_path / "a").write_bytes(b"from a file\r\n")
    (tmp_path / "empty").touch()
    sources = iter(["", "a text", tmp_path / "empty", tmp_path / "a"])
    assert list(training_blocks(sources)) == ["a text", "from a file\r\n"]


@pytest.mark.parametrize("sources", [[], ["", ""]])
def test_training_on_nothing_is_refused(sources):
    with pytest.raises(ValueError, match="sources must hold some text; received none"):
        training_blocks(sources)


def test_training_on_a_single_path_is_refused(tmp_path):
    for source in ("text", tmp_path, None):
        with pytest.raises(ValueError, match="sources must be a list of texts and paths"):
            training_blocks(source)


def test_training_on_a_number_does_not_close_a_file(tmp_path):
    with open(tmp_path / "text", "w+") as file:
        with pytest.raises(ValueError, match=f"texts and paths; received {file.fileno()} in it"):
            training_blocks([file.fileno()])
        assert os.fstat(file.fileno()).st_size == 0


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("", []),
        ("a", ["a"]),
        ("a\nb\n", ["a", "b"]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("\ufeffa\n\ufeffb", ["a", "\ufeffb"]),
        ("a\n\nb\u2028\x0b\r", ["a", "", "b\u2028\x0b\r"]),
    ],
)
def test_lines_end_with_lf_or_crlf_and_nothing_else(content, lines):
    assert split_lines(content.encode()) == lines


def test_formatted_json_is_parsed():
    assert parse_json(format_json({"a": "\u4e2d"})) == {"a": "\u4e2d"}
    with pytest.raises(ValueError, match="a JSON object is needed; received a list"):
        parse_json(b"[]")
