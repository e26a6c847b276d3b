"""Contents by hand; that ids are those of `tokenizers` on many texts is in tests/parity."""

import json

import pytest
import sentencepiece
import tokenizers

from keras_arch.text.sentence_piece_json import build_model
from tests.text.sentence_piece_files import (
    BYTES,
    ESCAPE,
    JOIN,
    METASPACE,
    PREPENDED,
    SPACE,
    STRIP,
    WORDS,
    byte_pairs,
    charsmap,
    unigram,
)

pytestmark = pytest.mark.once

SPECIAL = ["<pad>", "</s>", "<unk>", "<s>"]
TEXTS = ["ab", " ab", "a  b ", "\nab\tab\u3000b", "", "abba ab", "\u4e2da\u4e2d\u6587", "bab"]
PRECOMPILED = {"type": "Precompiled", "precompiled_charsmap": charsmap()}


def sequence(*steps):
    return {"type": "Sequence", "normalizers": [*steps]}


def check(content, texts):
    """Asserts that the model gives the ids of the file."""
    theirs = tokenizers.Tokenizer.from_str(json.dumps(content))
    model, scheme = build_model(content, SPECIAL)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    for text in texts:
        assert processor.encode(text) == theirs.encode(text, add_special_tokens=False).ids, text
    return processor, scheme


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"normalizer": sequence(PRECOMPILED)},
        {"normalizer": sequence(PRECOMPILED, JOIN)},
        {"normalizer": sequence(PRECOMPILED, STRIP, JOIN), "pre_tokenizer": METASPACE},
        {
            "pre_tokenizer__pretokenizers": [
                *WORDS["pretokenizers"][:1],
                {"type": "Metaspace", "replacement": SPACE, "add_prefix_space": True},
            ]
        },
    ],
)
def test_ids_of_unigrams(changes):
    processor, scheme = check(full(unigram(**changes)), TEXTS)
    assert scheme is None
    assert (processor.unk_id(), processor.pad_id(), processor.eos_id()) == (2, 0, 1)


def test_unigrams_may_spell_in_bytes():
    vocabulary = [*unigram()["model"]["vocab"], *([piece, 0.0] for piece in BYTES)]
    changes = {"model__vocab": vocabulary, "model__byte_fallback": True}
    processor, _ = check(full(unigram(**changes)), TEXTS)
    pieces = processor.encode("\u4e2d", out_type=str)
    assert pieces == [SPACE, "<0xE4>", "<0xB8>", "<0xAD>"]


@pytest.mark.parametrize(
    ("changes", "scheme"),
    [
        ({}, None),
        ({"normalizer": ESCAPE}, "never"),
        (
            {
                "normalizer": ESCAPE,
                "pre_tokenizer": {
                    "type": "Split",
                    "pattern": {"String": " "},
                    "behavior": "MergedWithPrevious",
                    "invert": False,
                },
            },
            "never",
        ),
        ({"normalizer": None, "pre_tokenizer": METASPACE | {"split": False}}, "always"),
        (
            {
                "normalizer": None,
                "pre_tokenizer": METASPACE | {"split": False, "prepend_scheme": "first"},
            },
            "first",
        ),
    ],
)
def test_ids_of_byte_pairs(changes, scheme):
    texts = [text for text in TEXTS if scheme in (None, "never") or not text]
    assert check(full(byte_pairs(**changes)), texts)[1] == scheme


def full(content):
    """The content with the fields that `tokenizers` wants of added tokens."""
    rest = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    added = [{**fields, **rest} for fields in content["added_tokens"]]
    return content | {"version": "1.0", "added_tokens": added}


def test_the_order_of_merges_counts():
    worse = [["a", "b"], [SPACE, "ab"], [f"{SPACE}a", "b"], [SPACE, "a"]]
    better = [[SPACE, "a"], ["a", "b"], [SPACE, "ab"], [f"{SPACE}a", "b"]]
    for merges in (worse, better, [" ".join(pair) for pair in better]):
        check(full(byte_pairs(model__merges=merges)), ["ab", "aab bab", "a ab"])


def test_merges_of_special_tokens_are_left_out():
    vocabulary = byte_pairs()["model"]["vocab"]
    more = {
        "<": len(vocabulary),
        "s>": len(vocabulary) + 1,
        "s": len(vocabulary) + 2,
        ">": len(vocabulary) + 3,
    }
    merges = [*byte_pairs()["model"]["merges"], ["s", ">"], ["<", "s>"]]
    content = byte_pairs(model__vocab=vocabulary | more, model__merges=merges)
    model, _ = build_model(content, SPECIAL)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    assert processor.encode("<s>", out_type=str) == [SPACE, "<", "s>"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"normalizer": None}, "must have a normalizer .* received None"),
        ({"normalizer": sequence({"type": "NFKD"}, PRECOMPILED)}, r"\(NFKD\).* received"),
        ({"normalizer": sequence(PRECOMPILED, STRIP)}, "Precompiled and then one of"),
        ({"normalizer__precompiled_charsmap": ""}, r"spaces for all white .* keeps \['U\+0009'"),
        ({"pre_tokenizer": METASPACE}, r"Precompiled and then one of .* received \[\]"),
        ({"pre_tokenizer": None}, "must have a pre_tokenizer .* received None"),
        ({"pre_tokenizer__pretokenizers": [METASPACE | {"prepend_scheme": "first"}]}, "'always'"),
        ({"pre_tokenizer__pretokenizers": [{"type": "Punctuation"}, METASPACE]}, "Punctuation"),
        ({"pre_tokenizer": METASPACE | {"replacement": "_"}}, "received {'replacement': '_'}"),
        ({"pre_tokenizer": METASPACE | {"split": False}}, "received {'split': False}"),
        ({"model__unk_id": None}, "unk_id .* the id of a piece; received None"),
        ({"model__unk_id": 8}, "unk_id .* the id of a piece; received 8"),
        ({"model__byte_fallback": True}, "all of <0x00> to <0xFF>"),
        ({"model__vocab": [["<unk>", 0], ["", 0], [f"a{SPACE}b", 0]]}, f"received .*a{SPACE}b"),
        ({"model__vocab": [["a", -3.0], ["b", -3.0], ["<unk>", -9.0]]}, r"a special one of -9\.0"),
        ({"model__new": 1}, "without new"),
        ({"post_processor": {"type": "Magic"}}, "post_processor .* received {'type': 'Magic'}"),
    ],
)
def test_other_unigrams_are_refused_by_name(changes, message):
    with pytest.raises(ValueError, match=message):
        build_model(unigram(**changes), SPECIAL)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"normalizer": {"type": "NFC"}}, "received .*NFC"),
        ({"normalizer": {**PREPENDED, "normalizers": [ESCAPE, ESCAPE]}}, "must have a normalizer"),
        ({"pre_tokenizer": {"type": "ByteLevel"}}, "pre_tokenizer .* received .*ByteLevel"),
        ({"normalizer": None}, "pre_tokenizer .* received None"),
        ({"normalizer": None, "pre_tokenizer": METASPACE}, "received {'split': True}"),
        ({"model__unk_token": None}, "unk_token .* a piece; received None"),
        ({"model__unk_token": "<x>"}, "unk_token .* a piece; received <x>"),
        ({"model__ignore_merges": True}, "received {'ignore_merges': True}"),
        ({"model__dropout": 0.1}, "received {'dropout': 0.1}"),
        ({"model__end_of_word_suffix": "</w>"}, "received .*</w>"),
        ({"model__vocab": {"<unk>": 1}}, "each id from 0 to 0 once"),
        ({"model__vocab": {"<unk>": 0, "a": 1}, "model__merges": []}, "all of <0x00> to <0xFF>"),
        ({"model__merges": [["a", "b"], [SPACE, "a"]]}, f"in a row; received .*{SPACE}ab"),
        (
            {"model__merges": [["a", "b"], [SPACE, "ab"], [SPACE, "a"], [f"{SPACE}a", "b"]]},
            f"in a row; received .*{SPACE}ab",
        ),
        ({"model__merges": [*byte_pairs()["model"]["merges"], ["b", "b"]]}, "received .*'bb'"),
        ({"model__merges": [*byte_pairs()["model"]["merges"], ["<0x0", "A>"]]}, "<0x0A>"),
    ],
)
def test_other_byte_pairs_are_refused_by_name(changes, message):
    with pytest.raises(ValueError, match=message):
        build_model(byte_pairs(**changes), SPECIAL)


def test_the_unknown_token_may_be_named_elsewhere():
    model, _ = build_model(byte_pairs(model__unk_token=None), SPECIAL, "<unk>")
    assert sentencepiece.SentencePieceProcessor(model_proto=model).unk_id() == 0
