"""Tokenizers of a Marian folder give the ids of `transformers`, in Python and in a graph."""

import json

import pytest
import sentencepiece
import tensorflow as tf

import keras_arch as ka
from tests.parity.tokenizer_folders import sentence_pieces
from tests.text.texts import TEXTS

transformers = pytest.importorskip("transformers")

pytestmark = [
    pytest.mark.once,
    pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses"),
]

CODES = [">>de<<", ">>fr<<"]
SIDES = {"source": {"model_type": "unigram"}, "target": {"model_type": "bpe"}}


def pieces(side):
    """Most of the pieces of a side: published vocabularies lack some."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=sentence_pieces(**SIDES[side]))
    return [processor.id_to_piece(i) for i in range(3, processor.get_piece_size()) if i % 17]


@pytest.fixture(scope="module", params=[False, True], ids=["shared", "separate"])
def folder(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("marian")
    source, target = pieces("source"), pieces("target")
    files = {"vocab": [*source, *target]}
    if request.param:
        # As many, because theirs has one id of the pad for both.
        size = min(len(source), len(target))
        files = {"vocab": source[:size], "target_vocab": target[:size]}
    for name, tokens in files.items():
        tokens = dict.fromkeys(["</s>", "<unk>", *CODES, *tokens, "<pad>"])
        content = {token: i for i, token in enumerate(tokens)}
        (folder / f"{name}.json").write_text(json.dumps(content))
    for side, options in SIDES.items():
        (folder / f"{side}.spm").write_bytes(sentence_pieces(**options))
    config = {"source_lang": "en", "target_lang": "de", "separate_vocabs": request.param}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def test_a_folder_that_is_saved_again_is_the_same(folder, tmp_path):
    theirs = transformers.MarianTokenizer.from_pretrained(folder)
    theirs.add_special_tokens({"additional_special_tokens": [">>de<<"]})
    theirs.save_pretrained(tmp_path)
    for side in SIDES:
        first, second = (ka.text.read_tokenizer(path, side=side) for path in (folder, tmp_path))
        assert second.special_ids == first.special_ids
        assert (second.vocabulary, second.model) == (first.vocabulary, first.model)


def test_texts_have_the_same_ids(folder):
    theirs = transformers.MarianTokenizer.from_pretrained(folder)
    texts = [*TEXTS, "the fox", "\u4e2d", "1\u4e2d 2"]
    coded = [f"{code} {text}" for code in CODES for text in TEXTS[:30]]
    for side, name in (("source", "text"), ("target", "text_target")):
        ours = ka.text.read_tokenizer(folder, side=side)
        for some, parses in ((texts, False), (coded, True)):
            ids = [ours.encode(text, parse_special=parses) for text in some]
            assert ours.encode_tensor(tf.constant(some), parses).to_list() == ids
            expected = theirs(**{name: some}, add_special_tokens=False)["input_ids"]
            assert ids == expected
        unknown = ours.special_ids["unknown"]
        assert sum(row.count(unknown) for row in ids) > 0
        end = theirs(**{name: ["the"]})["input_ids"][0][-1]
        assert end == ours.special_ids["end"] == theirs.eos_token_id
        assert ours.special_ids["pad"] == theirs.pad_token_id


def test_texts_come_back(folder):
    theirs = transformers.MarianTokenizer.from_pretrained(folder)
    ours = ka.text.read_tokenizer(folder)
    unknown = ours.special_ids["unknown"]
    rows = [[i for i in ours.encode(text) if i != unknown] for text in TEXTS]
    options = {"skip_special_tokens": True, "use_source_tokenizer": False}
    expected = [theirs.decode(row, **options) for row in rows]
    assert [ours.decode(row).strip() for row in rows] == expected
    assert len({*expected}) > 500
