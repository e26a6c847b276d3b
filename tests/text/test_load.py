"""Damaged and foreign folders; the way back is tested for every tokenizer in test_tokenizer."""

import json

import pytest

from keras_arch.text import TRAINABLE, load_tokenizer

pytestmark = pytest.mark.once


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_tokenizer(tmp_path / "nowhere")


@pytest.mark.parametrize("settings", [{}, {"tokenizer": "os.system"}, {"tokenizer": ["bytes"]}])
def test_an_unknown_tokenizer_lists_the_known_ones(tmp_path, settings):
    (tmp_path / "tokenizer.json").write_text(json.dumps(settings))
    with pytest.raises(ValueError, match=r"one of \['byte_pair', 'bytes', 'characters', .*\]"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("content", [b"{", b"[1]", b"\xff"])
def test_a_damaged_file_is_named(tmp_path, content):
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"tokenizer\.json must"):
        load_tokenizer(tmp_path)


def test_a_settings_file_without_characters_is_refused(tmp_path):
    (tmp_path / "tokenizer.json").write_text('{"tokenizer": "characters"}')
    with pytest.raises(ValueError, match="characters must be a string; received None"):
        load_tokenizer(tmp_path)


def test_trainable_tokenizers_are_trained_by_name():
    assert TRAINABLE.keys() == {"byte_pair", "word_piece", "sentence_piece"}
    for name, tokenizer in TRAINABLE.items():
        trained = tokenizer.train(["low lower lowest " * 9], 300)
        assert trained.name == name
        assert 0 < trained.vocabulary_size <= 300
        assert trained.decode(trained.encode("low lowest")) == "low lowest"
