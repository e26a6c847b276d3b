"""Folders by hand; those that `transformers` writes are in tests/parity."""

import contextlib
import json
import pathlib

import pytest
import tensorflow as tf
import tokenizers
from tokenizers import models, normalizers, pre_tokenizers

from keras_arch.text import SentencePieceTokenizer, WordPieceTokenizer, read_tokenizer
from keras_arch.text.byte_symbols import SYMBOLS
from tests.text.sentence_piece_files import byte_pairs, changed

pytestmark = pytest.mark.once

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "fox", "##es", "\u4e2d", "\u6587"]
BPE = {token: i for i, token in enumerate([*SYMBOLS, "he", "<s>"])}


def write(folder, **files):
    """Writes files, named without a dot; what is no text as JSON."""
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        name = name.replace("_json", ".json").replace("_txt", ".txt")
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def word_piece(**changes):
    """A `tokenizer.json` of BERT."""
    bert = tokenizers.Tokenizer(
        models.WordPiece({x: i for i, x in enumerate(PIECES)}, unk_token="[UNK]")
    )
    bert.normalizer = normalizers.BertNormalizer()
    bert.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    bert.add_special_tokens(PIECES[:5])
    return changed(json.loads(bert.to_str()), changes)


def byte_pair(**changes):
    """A `tokenizer.json` of GPT-2."""
    gpt2 = tokenizers.Tokenizer(models.BPE(BPE, [("h", "e")]))
    gpt2.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    gpt2.add_special_tokens(["<s>"])
    return changed(json.loads(gpt2.to_str()), changes)


@pytest.fixture
def model(tokenizers):
    return tokenizers["bpe"].model


class TestWordPiece:
    def test_a_vocabulary_alone_is_an_uncased_bert(self, tmp_path):
        # Field cases C84 and C85.
        tokenizer = read_tokenizer(write(tmp_path, vocab_txt="\n".join(PIECES) + "\n"))
        assert isinstance(tokenizer, WordPieceTokenizer)
        roles = ["pad", "unknown", "classification", "separator", "mask"]
        assert tokenizer.special_ids == {role: i for i, role in enumerate(roles)}
        assert tokenizer.encode("the [MASK] FOX", parse_special=True) == [5, 4, 6]
        assert tokenizer.encode("the [MASK] FOX") == [5, 1, 1, 1, 6]
        assert tokenizer.decode(tokenizer.encode("\u4e2d\u6587\u6587")) == "\u4e2d\u6587\u6587"
        assert tokenizer.encode("") == tokenizer.encode("", parse_special=True) == []

    @pytest.mark.parametrize("newline", ["\n", "\r\n"])
    def test_the_last_line_may_end_or_not(self, tmp_path, newline):
        for end in ("", newline):
            (tmp_path / "vocab.txt").write_bytes((newline.join(PIECES) + end).encode())
            assert read_tokenizer(tmp_path).vocabulary == tuple(PIECES)

    def test_the_configuration_is_honoured(self, tmp_path):
        config = {"do_lower_case": False, "strip_accents": True, "tokenize_chinese_chars": False}
        config |= {"tokenizer_class": "DistilBertTokenizerFast", "unk_token": "fox"}
        tokenizer = read_tokenizer(
            write(tmp_path, vocab_txt="\n".join(PIECES), tokenizer_config_json=config)
        )
        assert tokenizer.encode("th\u00e9 The \u4e2d\u6587") == [5, 6, 6]

    def test_added_tokens_follow_the_vocabulary(self, tmp_path):
        names = {"additional_special_tokens": ["[ENT]"]}
        folder = write(tmp_path, vocab_txt="\n".join(PIECES), special_tokens_map_json=names)
        write(folder, added_tokens_json={"[ENT]": 10})
        tokenizer = read_tokenizer(folder, vocabulary_size=13)
        assert tokenizer.special_ids["[ENT]"] == 10
        assert tokenizer.vocabulary[10:] == ("[ENT]", "<|unused_11|>", "<|unused_12|>")
        assert tokenizer.encode("[ENT]the", parse_special=True) == [10, 5]
        assert tokenizer.encode("[ENT]") == [1, 1, 1]

    def test_a_file_of_the_package_is_read(self, tmp_path):
        tokenizer = read_tokenizer(write(tmp_path, tokenizer_json=word_piece()))
        assert tokenizer.encode("the [MASK] FOXES", parse_special=True) == [5, 4, 6, 7]
        assert tokenizer.special_ids["unknown"] == 1


class TestBytePair:
    def test_files_of_a_roberta(self, tmp_path):
        mask = {"content": "<mask>", "lstrip": True, "special": True}
        config = {"bos_token": "<s>", "mask_token": mask, "added_tokens_decoder": {"258": mask}}
        folder = write(tmp_path, vocab_json=BPE, merges_txt="#version: 0.2\nh e\n")
        write(folder, tokenizer_config_json=config, config_json={"model_type": "roberta"})
        tokenizer = read_tokenizer(folder)
        assert tokenizer.takes_space == ("<mask>",)
        assert tokenizer.special_ids == {"begin": 257, "classification": 257, "mask": 258}
        for text, ids in (("he <mask>he", [256, 258, 256]), ("<s> he", [257, BPE["Ġ"], 256])):
            assert tokenizer.encode(text, parse_special=True) == ids
            assert tokenizer.encode_tensor(tf.constant([text]), True).to_list() == [ids]

    @pytest.mark.parametrize("merges", [["h e"], [["h", "e"]]])
    def test_a_file_of_the_package_is_read(self, tmp_path, merges):
        folder = write(tmp_path, tokenizer_json=byte_pair(model__merges=merges))
        tokenizer = read_tokenizer(folder)
        assert tokenizer.encode("<s>he", parse_special=True) == [257, 256]
        assert tokenizer.special_tokens == {"<s>": "<s>"}
        assert tokenizer.decode(tokenizer.encode("a\u00a0b \U0001f468\u200d")) == (
            "a\u00a0b \U0001f468\u200d"
        )


class TestSentencePiece:
    def test_a_t5_has_sentinels(self, tmp_path, model):
        (tmp_path / "spiece.model").write_bytes(model)
        write(tmp_path, tokenizer_config_json={"tokenizer_class": "T5Tokenizer", "extra_ids": 2})
        tokenizer = read_tokenizer(tmp_path, vocabulary_size=4010)
        ids = tokenizer.special_ids
        last = tokenizer.vocabulary_size - 1
        size = SentencePieceTokenizer(model).vocabulary_size
        assert (ids["sentinel_0"], ids["sentinel_1"], last) == (size + 1, size, 4009)
        text = "a <extra_id_0> b"
        parsed = [*tokenizer.encode("a "), size + 1, *tokenizer.encode(" b")]
        assert tokenizer.encode(text, parse_special=True) == parsed
        assert size + 1 not in tokenizer.encode(text)

    def test_without_a_class_it_is_the_model_alone(self, tmp_path, model):
        (tmp_path / "tokenizer.model").write_bytes(model)
        tokenizer = read_tokenizer(tmp_path)
        assert tokenizer.model == model
        assert tokenizer.special_ids == {"unknown": 0, "begin": 1, "end": 2}

    @pytest.mark.parametrize(
        ("prefix", "message"), [(True, None), (False, "add_prefix_space=False")]
    )
    def test_a_file_of_the_package_alone_is_read(self, tmp_path, prefix, message):
        write(tmp_path, tokenizer_json=byte_pairs(), tokenizer_config_json={"unk_token": "<unk>"})
        assert read_tokenizer(tmp_path, 270).vocabulary_size == 270
        config = {"unk_token": "<unk>", "add_prefix_space": prefix}
        write(tmp_path, tokenizer_config_json=config)
        with pytest.raises(ValueError, match=message) if message else contextlib.nullcontext():
            tokenizer = read_tokenizer(tmp_path)
            assert tokenizer.special_ids == {"unknown": 0, "begin": 1}
            assert tokenizer.decode(tokenizer.encode("a  b")) == "a  b"


def test_no_id_is_below_zero(tmp_path, model):
    # Field case C85.
    texts = ["\u4e2d\u6587\u6587\u672c", "", "a\u00a0b", "\U0001f468\u200d\U0001f469", "\x00"]
    files = {"bert": {"vocab_txt": "\n".join(PIECES)}, "gpt2": {"tokenizer_json": byte_pair()}}
    for name, content in files.items():
        (tmp_path / name).mkdir()
        tokenizer = read_tokenizer(write(tmp_path / name, **content))
        assert all(i >= 0 for text in texts for i in tokenizer.encode(text))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "must hold tokenizer.json, .* received none of them"),
        ({"tokenizer_json": {"tokenizer": "bytes"}}, "load_tokenizer reads"),
        ({"vocab_json": BPE}, "received none of them"),
        ({"vocab_json": BPE, "merges_txt": ""}, "must be one of .*'gpt2'.* received None"),
        (
            {"vocab_txt": "[UNK]", "tokenizer_config_json": {"tokenizer_class": "MPNetTokenizer"}},
            "tokenizer_class, .* received 'mpnet'",
        ),
        (
            {"vocab_json": BPE, "merges_txt": "", "config_json": {"model_type": "qwen2"}},
            "received 'qwen2'",
        ),
        (
            {"vocab_txt": "[UNK]", "tokenizer_config_json": {"do_basic_tokenize": False}},
            "do_basic_tokenize=False",
        ),
        (
            {"vocab_txt": "[UNK]", "tokenizer_config_json": {"never_split": ["a"]}},
            "never_split=",
        ),
        (
            {"tokenizer_json": byte_pair(), "tokenizer_config_json": {"add_prefix_space": True}},
            "add_prefix_space=True",
        ),
        (
            {"tokenizer_json": word_piece(), "tokenizer_config_json": {"do_lower_case": False}},
            r"do_lower_case of \[True\], .* received do_lower_case=False",
        ),
        (
            {"tokenizer_json": word_piece(), "tokenizer_config_json": {"unk_token": "fox"}},
            r"unknown token of tokenizer_config.json, 'fox'; received '\[UNK\]'",
        ),
        ({"tokenizer_json": byte_pair(model__vocab={"a": 1})}, "each id from 0 to 0 once"),
        ({"tokenizer_json": {"model": {"type": "WordLevel", "vocab": {}}}}, "a WordLevel model"),
        ({"tokenizer_json": {"model": {"type": "Unigram", "vocab": []}}}, "the id of a piece"),
        ({"tokenizer_json": byte_pair(model__byte_fallback=True)}, "unk_token .* received None"),
        ({"tokenizer_json": {"model": {"vocab": 3}}}, "can be read here"),
        ({"tokenizer_json": byte_pair(model__vocab=[1])}, r"types that .* received others \("),
        ({"tokenizer_json": byte_pair(added_tokens=[{"id": 1}])}, r"received others \(KeyError"),
        ({"tokenizer_json": {}}, "file of the tokenizers package"),
        ({"tokenizer_json": "[" * 100_000}, "tokenizer.json must be a JSON file; .* nested"),
        ({"tokenizer_json": [1]}, "must be a JSON file"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(tmp_path, files, message):
    with pytest.raises(ValueError, match=message):
        read_tokenizer(write(tmp_path, **files))


def test_a_model_too_small_is_refused(tmp_path):
    write(tmp_path, vocab_txt="\n".join(PIECES))
    with pytest.raises(ValueError, match="vocabulary_size=9 and 10 tokens"):
        read_tokenizer(tmp_path, vocabulary_size=9)


def test_the_copy_of_a_sentence_piece_model_must_be_its_copy(tmp_path, model):
    (tmp_path / "spiece.model").write_bytes(model)
    write(tmp_path, tokenizer_json={"model": {"type": "Unigram", "vocab": [["a", 0.0]]}})
    with pytest.raises(ValueError, match="must hold the pieces of the SentencePiece model"):
        read_tokenizer(tmp_path)


@pytest.mark.parametrize("kind", ["AlbertTokenizer", "XLNetTokenizerFast"])
def test_other_uses_of_sentence_pieces_are_refused(tmp_path, model, kind):
    (tmp_path / "spiece.model").write_bytes(model)
    write(tmp_path, tokenizer_config_json={"tokenizer_class": kind})
    with pytest.raises(ValueError, match=r"must be one of .*'t5'"):
        read_tokenizer(tmp_path)


@pytest.mark.parametrize("count", [10**9, -1, "100"])
def test_sentinels_are_not_without_number(tmp_path, model, count):
    (tmp_path / "spiece.model").write_bytes(model)
    write(tmp_path, tokenizer_config_json={"tokenizer_class": "T5Tokenizer", "extra_ids": count})
    with pytest.raises(ValueError, match=f"extra_ids must .* received {count!r}"):
        read_tokenizer(tmp_path)


def test_a_model_that_keeps_spaces_keeps_them_before_special_tokens(tmp_path, model):
    (tmp_path / "tokenizer.model").write_bytes(model)
    added = {"1": {"content": "<s>", "lstrip": True, "special": True}}
    write(tmp_path, tokenizer_config_json={"added_tokens_decoder": added})
    with pytest.raises(ValueError, match=r"received \['<s>'\] with lstrip"):
        read_tokenizer(tmp_path)


def test_files_that_are_not_there_need_not_be(tmp_path):
    with pytest.raises(ValueError, match="received none of them"):
        read_tokenizer(pathlib.Path(tmp_path / "nowhere"))
