"""Folders by hand; one that `transformers` reads is in tests/parity."""

import json

import pytest

from keras_arch.text import MarianTokenizer, read_tokenizer

pytestmark = pytest.mark.once

VOCABULARY = {"</s>": 0, "<unk>": 1, ">>de<<": 2, "a": 3, "\u2581": 4, "b": 5, "<pad>": 6}


@pytest.fixture
def folder(tmp_path, tokenizers):
    for side, name in (("source", "bpe"), ("target", "unigram")):
        (tmp_path / f"{side}.spm").write_bytes(tokenizers[name].model)
    return write(tmp_path, {"source_lang": "en", "target_lang": "de"})


def write(folder, config, **files):
    for name, content in {"vocab": VOCABULARY, "tokenizer_config": config, **files}.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def test_sides_have_a_model_each_and_one_vocabulary(folder, tokenizers):
    source, target = read_tokenizer(folder, side="source"), read_tokenizer(folder, 8)
    assert (source.model, target.model) == (tokenizers["bpe"].model, tokenizers["unigram"].model)
    assert source.vocabulary == tuple(VOCABULARY)
    assert target.vocabulary == (*VOCABULARY, "<|unused_7|>")
    assert source.special_ids == {"unknown": 1, "end": 0, "pad": 6, ">>de<<": 2}
    assert source.special_ids.items() < target.special_ids.items()
    assert (target.start_id, source.start_id) == (6, 0)
    assert isinstance(source, MarianTokenizer)


def test_a_language_is_plain_text_unless_it_may_be_named(folder):
    source = read_tokenizer(folder, side="source")
    assert source.encode(">>de<<b", parse_special=True) == [2, 5]
    assert 2 not in source.encode(">>de<<b")


def test_sides_may_have_vocabularies_of_their_own(folder):
    own = {"<unk>": 0, "</s>": 1, "b": 2, "<pad>": 3}
    added = {"6": {"content": "<pad>", "special": True}}
    config = {"separate_vocabs": True, "added_tokens_decoder": added}
    write(folder, config, target_vocab=own)
    assert read_tokenizer(folder, side="target").vocabulary == tuple(own)
    assert read_tokenizer(folder, side="source").vocabulary == tuple(VOCABULARY)
    assert read_tokenizer(folder).encode("b", parse_special=True) == [2]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"sp_model_kwargs": {"alpha": 0.1}}, "received sp_model_kwargs="),
        ({"unk_token": "<x>"}, r"received \['<x>'\] without one"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(folder, config, message):
    with pytest.raises(ValueError, match=message):
        read_tokenizer(write(folder, config))


def test_a_missing_vocabulary_is_named(folder):
    write(folder, {"separate_vocabs": True})
    with pytest.raises((ValueError, FileNotFoundError), match=r"target_vocab\.json"):
        read_tokenizer(folder)


def test_a_side_is_named(folder):
    with pytest.raises(ValueError, match="received side='both'"):
        read_tokenizer(folder, side="both")
