import json

import pytest
import tokenizers
from tokenizers import normalizers, pre_tokenizers, processors

from keras_arch.text.tokenizer_json import byte_pair_options, model_type, word_piece_options
from tests.text.test_read import byte_pair, word_piece

pytestmark = pytest.mark.once


def part(value):
    """What a file holds of a part of a tokenizer."""
    return json.loads(value.__getstate__())


def split(pattern, behavior="isolated", **options):
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    first = pre_tokenizers.Split(tokenizers.Regex(pattern), behavior, **options)
    return part(pre_tokenizers.Sequence([first, byte_level]))


QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def test_kinds_of_models():
    assert model_type(word_piece()) == "WordPiece"
    assert model_type(byte_pair()) == "BPE"
    assert model_type({"model": {"vocab": {}, "max_input_chars_per_word": 100}}) == "WordPiece"
    assert model_type(byte_pair(model__byte_fallback=True)) == "SentencePiece"
    assert model_type({"model": {"type": "Unigram", "vocab": []}}) == "SentencePiece"


def test_options_of_word_pieces():
    content = word_piece(normalizer__lowercase=False, normalizer__strip_accents=True)
    options = {"lowercase": False, "strip_accents": True, "part_ideographs": True}
    assert word_piece_options(content) == options


def test_options_of_byte_pairs():
    options = {"pattern": "gpt2", "whole_words": False, "composes": False}
    assert byte_pair_options(byte_pair()) == options
    content = byte_pair(pre_tokenizer=split(QWEN2), normalizer=part(normalizers.NFC()))
    assert byte_pair_options(content) == options | {"pattern": "qwen2", "composes": True}
    content = byte_pair(model__ignore_merges=True)
    assert byte_pair_options(content) == options | {"whole_words": True}


def test_what_stands_around_a_text_is_left_to_the_model():
    around = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 257)])
    for processor in (
        around,
        processors.RobertaProcessing(("<s>", 257), ("<s>", 257)),
        processors.Sequence([processors.ByteLevel(), around]),
    ):
        byte_pair_options(byte_pair(post_processor=part(processor)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"normalizer": None}, "must have a normalizer .* received None"),
        ({"normalizer": {"type": "NFKC"}}, r"normalizer \(NFKC\).* received {'type': 'NFKC'}"),
        ({"normalizer__clean_text": False}, "received {'clean_text': False}"),
        ({"normalizer__new": 1}, "without new; received {'new': 1}"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "received {'type': 'Whitespace'}"),
        ({"model__continuing_subword_prefix": "@@"}, "received .*'@@'"),
        ({"model__max_input_chars_per_word": 200}, "received .*200"),
        ({"post_processor": {"type": "Magic"}}, "post_processor .* received {'type': 'Magic'}"),
    ],
)
def test_other_word_pieces_are_refused_by_name(changes, message):
    with pytest.raises(ValueError, match=message):
        word_piece_options(word_piece(**changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"normalizer": {"type": "NFKC"}}, r"normalizer \(NFKC\).* received {'type': 'NFKC'}"),
        ({"model__end_of_word_suffix": "</w>"}, "received .*</w>"),
        ({"model__continuing_subword_prefix": "##"}, "received .*##"),
        ({"model__dropout": 0.1}, "received {'dropout': 0.1}"),
        ({"pre_tokenizer": None}, "must have a pre_tokenizer .* received None"),
        ({"pre_tokenizer__add_prefix_space": True}, "received {'add_prefix_space': True}"),
        ({"pre_tokenizer__use_regex": False}, "received {'use_regex': False}"),
        ({"pre_tokenizer": split(r"\w+")}, r"pattern .* received {'Regex': '\\\\w\+'}"),
        ({"pre_tokenizer": split(QWEN2, "removed")}, "received {'behavior': 'Removed'}"),
        ({"pre_tokenizer": split(QWEN2, invert=True)}, "received {'invert': True}"),
        ({"pre_tokenizer": {"type": "Metaspace"}}, "received {'type': 'Metaspace'}"),
    ],
)
def test_other_byte_pairs_are_refused_by_name(changes, message):
    with pytest.raises(ValueError, match=message):
        byte_pair_options(byte_pair(**changes))
