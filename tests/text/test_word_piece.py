import subprocess
import sys

import keras_nlp
import pytest
import tensorflow as tf

from keras_arch.text import WordPieceTokenizer, load_tokenizer
from tests.text.texts import CORPUS, TEXTS

pytestmark = pytest.mark.once

VOCABULARY = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "fox",
    "##es",
    "\u4e2d",
    "\u6587",
]
SPECIAL = {"unknown": "[UNK]"}


def reference_encode(tokenizer, text):
    """The longest piece that is the beginning of what is left of a word, again and again."""
    ids = {piece: i for i, piece in enumerate(tokenizer.vocabulary)}
    for name in tokenizer.special_tokens.values():
        del ids[name]
    encoded = []
    for word in tokenizer._words.spread(text).split():
        pieces, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if prefix + word[start:end] in ids), None)
            if end is None:
                break
            pieces.append(ids[prefix + word[start:end]])
            start = end
        known = start == len(word) <= 100
        encoded += pieces if known else [tokenizer.special_ids["unknown"]]
    return encoded


def test_encode_equals_the_reference(word_piece):
    texts = [*TEXTS, "a" * 100, "a" * 101, "\U0001f468" * 101]
    expected = [reference_encode(word_piece, text) for text in texts]
    assert [word_piece.encode(text) for text in texts] == expected
    assert word_piece.encode_tensor(tf.constant(texts)).to_list() == expected


def test_ordinary_text_gives_the_ids_of_keras_nlp(word_piece):
    other = keras_nlp.tokenizers.WordPieceTokenizer(
        list(word_piece.vocabulary), lowercase=True, strip_accents=True
    )
    texts = ["Don't we'll know: caf\u00e9, end.", "the  end we\u4e2d\u6587\n"]
    assert [list(other(text)) for text in texts] == [word_piece.encode(text) for text in texts]


@pytest.mark.parametrize("lowercase", [True, False])
def test_a_named_mask_in_a_text_is_the_mask_when_asked(lowercase):
    tokenizer = WordPieceTokenizer(VOCABULARY, lowercase=lowercase)
    text = "the [MASK] fox"
    assert tokenizer.encode(text, parse_special=True) == [5, 4, 6]
    assert tokenizer.encode_tensor(tf.constant([text]), True).to_list() == [[5, 4, 6]]
    assert tokenizer.encode(text) == [5, 1, 1, 1, 6]
    assert tokenizer.encode_tensor(tf.constant([text])).to_list() == [[5, 1, 1, 1, 6]]
    assert tokenizer.encode("[mask]", parse_special=True) == [1, 1, 1]


def test_a_word_that_spells_a_special_token_is_not_it():
    tokenizer = WordPieceTokenizer(["unk", "end", "fox", "##end"], {"unknown": "unk", "end": "end"})
    for text, ids in (("fox end", [2, 0]), ("unk fox", [0, 2]), ("foxend end", [2, 3, 0])):
        assert tokenizer.encode(text) == ids
        assert tokenizer.encode_tensor(tf.constant([text])).to_list() == [ids]
    assert tokenizer.encode("fox end", parse_special=True) == [2, 1]


def test_chinese_comes_back_without_spaces():
    tokenizer = WordPieceTokenizer(VOCABULARY)
    ids = tokenizer.encode("\u4e2d\u6587\u6587 The FOXES ")
    assert ids == [8, 9, 9, 5, 6, 7]
    assert tokenizer.decode(ids) == "\u4e2d\u6587\u6587 the foxes"


def test_words_of_known_pieces_come_back(word_piece):
    texts = [word_piece.decode(word_piece.encode(text)) for text in TEXTS]
    known = [text for text in texts if "[UNK]" not in text]
    assert len(known) > 500
    assert [word_piece.decode(word_piece.encode(text)) for text in known] == known


def test_special_ids_are_berts():
    tokenizer = WordPieceTokenizer.train(["the fox"], 100)
    roles = ["pad", "unknown", "classification", "separator", "mask"]
    assert tokenizer.special_ids == {role: i for i, role in enumerate(roles)}
    assert tokenizer.vocabulary[:5] == ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    assert tokenizer.start_id is None


def test_training_is_the_same_in_every_process_and_streams_files(tmp_path, word_piece):
    (tmp_path / "a.txt").write_bytes(CORPUS[0].encode())
    sources = iter([tmp_path / "a.txt"] * 3)
    in_process = WordPieceTokenizer.train(sources, 7000, alphabet_size=3000)
    assert in_process.vocabulary == word_piece.vocabulary
    program = (
        "import pathlib, sys\n"
        "from keras_arch.text import WordPieceTokenizer\n"
        "sources = [pathlib.Path(sys.argv[1])] * 3\n"
        "WordPieceTokenizer.train(sources, 7000, alphabet_size=3000).save(sys.argv[2])\n"
    )
    command = [sys.executable, "-c", program, tmp_path / "a.txt", tmp_path / "saved"]
    subprocess.run(command, check=True, capture_output=True)
    assert load_tokenizer(tmp_path / "saved").vocabulary == word_piece.vocabulary


def test_rare_characters_are_left_out():
    tokenizer = WordPieceTokenizer.train(["aaa bbb c"], 100, SPECIAL, alphabet_size=2)
    assert {"a", "##a", "b", "##b"} <= set(tokenizer.vocabulary)
    assert not {"c", "##c"} & set(tokenizer.vocabulary)
    assert tokenizer.encode("c") == [0]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_published_vocabulary_loads(tmp_path, newline):
    (tmp_path / "vocab.txt").write_bytes(newline.join([*VOCABULARY, ""]).encode())
    (tmp_path / "tokenizer.json").write_text('{"tokenizer": "word_piece", "lowercase": false}')
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.vocabulary == tuple(VOCABULARY)
    assert tokenizer.encode("the The") == [5, 1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[UNK]\na\nb\na\n", r"received 'a' as vocabulary\[1\] and as vocabulary\[3\]"),
        ("[UNK]\na\n\nb\n", r"received vocabulary\[2\]=''"),
        ("a\n", r"received one without \['\[UNK\]'\]"),
        ("", r"received one without \['\[UNK\]'\]"),
    ],
)
def test_a_wrong_vocabulary_file_is_refused(tmp_path, content, message):
    (tmp_path / "vocab.txt").write_text(content)
    settings = (
        '{"tokenizer": "word_piece", "lowercase": true, "special_tokens": {"unknown": "[UNK]"}}'
    )
    (tmp_path / "tokenizer.json").write_text(settings)
    with pytest.raises(ValueError, match=f"{tmp_path} holds no word_piece tokenizer: .*{message}"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lowercase": 1}, "received lowercase=1"),
        ({"strip_accents": "no"}, "received strip_accents='no'"),
        ({"special_tokens": {"pad": "[PAD]"}}, "must name the unknown token"),
        ({"vocabulary": ["[UNK]", 3]}, r"received vocabulary\[1\]=3"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        WordPieceTokenizer(**{"vocabulary": VOCABULARY, **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"vocabulary_size": 10}, r"at least 11, .* alphabet of 3 characters .* received"),
        ({"sources": "abc"}, "must be a list of texts and paths; received 'abc'"),
        ({"sources": ["", ""]}, "must hold some text"),
        ({"sources": ["\ud800"]}, "must hold Unicode characters only"),
        ({"alphabet_size": 0}, "received alphabet_size=0"),
        ({"special_tokens": []}, "must map roles to names"),
    ],
)
def test_wrong_training_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        WordPieceTokenizer.train(**{"sources": ["abc"], "vocabulary_size": 300, **arguments})


def test_whole_words_are_the_most_frequent_ones():
    text = "to be, or not to be: to BE, \u00f6der odd"
    words = WordPieceTokenizer.from_words([text], 9, {"unknown": "[UNK]"})
    # By count, then by code point.
    assert words.vocabulary == ("[UNK]", "be", "to", ",", ":", "not", "odd", "oder", "or")
    assert words.encode("To be, tobe odder.") == [2, 1, 3, 0, 0, 0]
    smaller = WordPieceTokenizer.from_words([text], 4, {"unknown": "[UNK]"})
    assert smaller.vocabulary == ("[UNK]", "be", "to", ",")


def test_whole_words_need_room():
    with pytest.raises(ValueError, match="at least 2, to hold the special tokens and a word"):
        WordPieceTokenizer.from_words(["a"], 1, SPECIAL)
