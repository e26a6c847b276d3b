import functools
import itertools
import json

import pytest
import regex
import tensorflow as tf

from keras_arch.text import BytePairTokenizer
from keras_arch.text.byte_symbols import SYMBOLS
from tests.text.texts import CORPUS, TEXTS

pytestmark = pytest.mark.once

# Split as in the code published with Radford et al. 2019, with Unicode's own set of spaces.
GPT2_WORDS = regex.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+"
    r"|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+"
)


def reference_encode(tokenizer, text):
    """Byte-pair encoding word by word: merge the lowest-ranked pair, leftmost first, until none."""
    ranks = {pair: rank for rank, pair in enumerate(tokenizer.merges)}

    @functools.cache
    def encode_word(word):
        parts = [SYMBOLS[byte] for byte in word.encode()]
        while True:
            pairs = [pair for pair in itertools.pairwise(parts) if pair in ranks]
            if not pairs:
                return [tokenizer.vocabulary[part] for part in parts]
            best = min(pairs, key=ranks.get)
            first = next(i for i in range(len(parts)) if tuple(parts[i : i + 2]) == best)
            parts[first : first + 2] = ["".join(best)]

    return [token for word in GPT2_WORDS.findall(text) for token in encode_word(word)]


def test_encode_equals_the_reference(byte_pair):
    assert [byte_pair.encode(text) for text in TEXTS] == [
        reference_encode(byte_pair, text) for text in TEXTS
    ]


def test_the_vocabulary_holds_merged_spaces(byte_pair):
    # Otherwise the tests of splitting could not fail.
    assert {"ĠĠ", "ĊĊ"} <= byte_pair.vocabulary.keys()


def test_training_is_deterministic_and_streams_files(tmp_path, byte_pair):
    (tmp_path / "a.txt").write_bytes(CORPUS[0].encode())
    from_files = BytePairTokenizer.train([tmp_path / "a.txt"] * 3, 1500)
    assert from_files.vocabulary == byte_pair.vocabulary
    assert from_files.merges == byte_pair.merges


def test_training_learns_the_most_frequent_pair_first():
    tokenizer = BytePairTokenizer.train(["low lower lowest low"], 259)
    # "lo" and "ow" both occur four times; then "low".
    assert tokenizer.merges == [("l", "o"), ("lo", "w")]
    assert tokenizer.vocabulary_size == 259
    assert len(tokenizer.encode("low")) == 1


def test_a_small_corpus_gives_a_small_vocabulary():
    assert BytePairTokenizer.train(["ab"], 10_000).vocabulary_size == 258


def test_the_name_of_the_end_token_is_plain_text_unless_it_is_parsed(byte_pair):
    text, end = "a<|endoftext|>b", byte_pair.special_ids["end"]
    assert byte_pair.encode(text) == reference_encode(byte_pair, text)
    parsed = [*byte_pair.encode("a"), end, *byte_pair.encode("b")]
    assert byte_pair.encode(text, parse_special=True) == parsed
    texts = tf.constant([text])
    assert byte_pair.encode_tensor(texts, parse_special=True).to_list() == [parsed]


def test_special_tokens_come_first_and_may_have_any_name():
    special = {
        "begin": "<\uff5cbegin\uff5c>",
        "end": "<\uff5cend\uff5c>",
        "pad": "<\uff5cend\uff5c>",
    }
    tokenizer = BytePairTokenizer.train(["low lower"], 260, special)
    assert tokenizer.special_ids == {"begin": 0, "end": 1, "pad": 1}
    assert tokenizer.vocabulary_size == 260
    assert tokenizer.decode(tokenizer.encode("low")) == "low"


def test_nothing_merges_into_a_special_token():
    # "end" is a word of the vocabulary here, and a special token in the other tokenizer.
    plain = BytePairTokenizer.train(["end end"], 259)
    assert "end" in plain.vocabulary
    with pytest.raises(ValueError, match=r"merges must be pairs .* received"):
        BytePairTokenizer(plain.vocabulary, plain.merges, {"end": "end"})
    with pytest.raises(ValueError, match=r"received \['end'\], which the corpus made tokens of"):
        BytePairTokenizer.train(["end end"], 260, {"end": "end"})


def test_half_a_character_decodes_to_the_replacement_character(byte_pair):
    half = [byte_pair.vocabulary[SYMBOLS["\u4e2d".encode()[0]]]]
    assert byte_pair.decode(half) == "\ufffd"
    assert byte_pair.decode_tensor(tf.constant([half])).numpy()[0].decode() == "\ufffd"


def test_a_half_surrogate_is_refused(byte_pair):
    with pytest.raises(ValueError, match=r"received '\\ud800' at position 1"):
        byte_pair.encode("a\ud800")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_published_files_load(tmp_path, newline):
    # The form of GPT-2's files: the end token last, a version line, no more than that.
    vocabulary = {symbol: i for i, symbol in enumerate([*SYMBOLS, "Ġt", "he", "<|endoftext|>"])}
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    (tmp_path / "merges.txt").write_bytes(
        newline.join(["#version: 0.2", "Ġ t", "h e", ""]).encode()
    )
    (tmp_path / "tokenizer.json").write_text('{"special_tokens": {"end": "<|endoftext|>"}}')
    tokenizer = BytePairTokenizer.load(tmp_path)
    assert tokenizer.special_ids == {"end": 258}
    assert tokenizer.encode(" the") == [256, 257]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"vocabulary_size": 256}, "at least 257, .* received vocabulary_size=256"),
        ({"sources": []}, "must hold some text"),
        ({"sources": ["", ""]}, "must hold some text"),
        ({"sources": "abc"}, "must be a list of texts and paths; received 'abc'"),
        ({"vocabulary_size": 300.0}, "must be an integer; received vocabulary_size=300.0"),
        ({"special_tokens": {"end": ""}}, "received 'end': ''"),
        ({"special_tokens": {"end": "a"}}, r"received \['a'\]"),
    ],
)
def test_wrong_training_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        BytePairTokenizer.train(**{"sources": ["abc"], "vocabulary_size": 300, **arguments})


@pytest.mark.parametrize(
    ("change", "merges", "message"),
    [
        ({"a": 999}, [], "each id from 0 to 257 once"),
        ({"<|endoftext|>": None}, [], r"without \['<\|endoftext\|>'\]"),
        ({"Ġ": None}, [], r"without \['Ġ'\]"),
        ({"ab": None}, [("a", "b")], r"received \('a', 'b'\)"),
        ({}, [("a",)], r"received \('a',\)"),
        ({}, [("a", "b"), ("a", "b")], "must be distinct; received 2, 1 of them distinct"),
        ({"ab": None, "\u4e2d": 257}, [], "received the token '\u4e2d'"),
    ],
)
def test_wrong_vocabularies_are_refused(change, merges, message):
    vocabulary = {token: i for i, token in enumerate([*SYMBOLS, "<|endoftext|>", "ab"])}
    vocabulary = {**vocabulary, **change}
    vocabulary = {token: token_id for token, token_id in vocabulary.items() if token_id is not None}
    if None in change.values():
        ids = range(len(vocabulary))
        vocabulary = dict(zip(vocabulary, ids, strict=True))
    with pytest.raises(ValueError, match=message):
        BytePairTokenizer(vocabulary, merges)


def test_composed_characters(byte_pair):
    options = {"special_tokens": byte_pair.special_tokens, "composes": True}
    composing = BytePairTokenizer(byte_pair.vocabulary, byte_pair.merges, **options)
    # Unicode's own examples: a ring and a dot above in both orders, Hangul, what never composes.
    text = "A\u030a e\u0323\u0307 e\u0307\u0323 \u1100\u1161\u11a8 \u0958 \u212b \ufb01"
    composed = "\u00c5 \u1eb9\u0307 \u1eb9\u0307 \uac01 \u0915\u093c \u00c5 \ufb01"
    assert composing.decode(composing.encode(text)) == composed
    assert composing.encode(text) == byte_pair.encode(composed)
    assert composing.encode_tensor(tf.constant([text])).to_list() == [composing.encode(text)]
    for locate in (composing.locate, composing.locate_tensor):
        with pytest.raises(ValueError, match="received one that composes them"):
            locate(text)
