"""Damaged and foreign folders; the way back is tested for every tokenizer in test_tokenizer."""

import json

import pytest

from keras_arch.text import load_tokenizer


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_tokenizer(tmp_path / "nowhere")


@pytest.mark.parametrize("settings", [{}, {"tokenizer": "os.system"}])
def test_an_unknown_tokenizer_lists_the_known_ones(tmp_path, settings):
    (tmp_path / "tokenizer.json").write_text(json.dumps(settings))
    with pytest.raises(ValueError, match=r"\['byte_pair', 'characters'\]"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("content", [b"{", b"[1]", b"\xff"])
def test_a_damaged_file_is_named(tmp_path, content):
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"tokenizer\.json must"):
        load_tokenizer(tmp_path)


def test_a_settings_file_without_characters_is_refused(tmp_path):
    (tmp_path / "tokenizer.json").write_text('{"tokenizer": "characters"}')
    with pytest.raises(ValueError, match="under characters; received None"):
        load_tokenizer(tmp_path)
