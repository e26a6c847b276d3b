import gzip

import pytest

from keras_arch.text import find_pairs
from keras_arch.text.pairs import read_pairs

pytestmark = pytest.mark.once

LINES = {"en": "a dog\ntwo  cats\n", "de": "ein Hund\r\nzwei Katzen\n"}


@pytest.fixture
def folder(tmp_path):
    """Plain files and gzipped ones, a test set under its own name."""
    for language, text in LINES.items():
        (tmp_path / f"train.{language}").write_bytes(text.encode())
        (tmp_path / f"val.{language}.gz").write_bytes(gzip.compress(text.encode()))
        (tmp_path / f"test_2016_flickr.{language}").write_bytes(text.encode())
    return tmp_path


def test_a_folder_holds_three_splits(folder):
    expected = (["a dog", "two  cats"], ["ein Hund", "zwei Katzen"])
    assert find_pairs(folder, "en", "de") == (expected,) * 3


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train.en", b"a dog\n", "as many lines; received 1 and 2"),
        ("train.en", b"a dog\n\n", "a text on each line; received 2 lines, the first empty .* 2"),
        ("val.de.gz", b"no gzip", r"val.de.gz must be UTF-8 text; reading it failed"),
        ("train.de", b"\xff\n", r"train.de must be UTF-8 text; reading it failed"),
        ("train.de", None, r"must hold one of \['train.de', 'train.de.gz'\]"),
    ],
)
def test_what_is_wrong_is_named(folder, name, content, message):
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        find_pairs(folder, "en", "de")


def test_multi30k_is_checked(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_ARCH_DATA", str(tmp_path))
    (tmp_path / "multi30k").mkdir()
    (tmp_path / "multi30k" / "train.en.gz").write_bytes(gzip.compress(b"a dog\n"))
    with pytest.raises(ValueError, match=r"train.en.gz is damaged: its SHA-256 must be d79cfa"):
        find_pairs("multi30k", "en", "de")


def test_multi30k_that_cannot_be_had(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("KERAS_ARCH_DATA", raising=False)

    def refuse(*_, **__):
        raise OSError("no network")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    with pytest.raises(ValueError, match=r"\(no network\). Set KERAS_ARCH_DATA to a folder"):
        find_pairs("multi30k", "en", "de")


def test_unknown_names_are_named():
    with pytest.raises(ValueError, match="must be a folder or 'multi30k'; received 'wmt14'"):
        find_pairs("wmt14", "en", "de")
    with pytest.raises(ValueError, match="received 'xx'"):
        find_pairs("multi30k", "xx", "de")


def test_spaces_inside_stay(folder):
    assert read_pairs(folder / "train.en", folder / "train.de").sources[1] == "two  cats"
