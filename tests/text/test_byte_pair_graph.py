import unicodedata

import pytest
import tensorflow as tf
import tokenizers

from keras_arch.text import BytePairTokenizer
from keras_arch.text.byte_pair_graph import split_words
from keras_arch.text.byte_pair_words import PATTERNS
from tests.text.texts import TEXTS

pytestmark = pytest.mark.once


# As in the tokenizer.json of LLaMA 3 and of Qwen2.
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPLITTERS = {
    "gpt2": tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False),
    "llama3": tokenizers.pre_tokenizers.Split(tokenizers.Regex(LLAMA3), "isolated"),
    "qwen2": tokenizers.pre_tokenizers.Split(
        tokenizers.Regex(LLAMA3.replace("{1,3}", "")), "isolated"
    ),
}
BY_PATTERN = pytest.mark.parametrize("name", SPLITTERS)


def reference_words(text, name):
    """The words of the `tokenizers` package."""
    return [text[start:end] for _, (start, end) in SPLITTERS[name].pre_tokenize_str(text)]


def graph_words(texts, name):
    words = split_words(tf.constant(texts), PATTERNS[name]).to_list()
    return [[word.decode() for word in row] for row in words]


@BY_PATTERN
def test_words_equal_the_reference(name):
    texts = [*TEXTS, "I'LL 'S it\u017f'\u017f", "12345 a\n\n  b", "!\r\n\n x", "\u00a0\u00a0a"]
    assert graph_words(texts, name) == [reference_words(text, name) for text in texts]


@BY_PATTERN
def test_every_assigned_character_is_split_like_the_reference(name):
    private_or_not_there = {"Cn", "Co", "Cs"}
    assigned = [
        chr(code)
        for code in range(0x110000)
        if unicodedata.category(chr(code)) not in private_or_not_there
    ]
    texts = [f"a{character}1 {character}." for character in assigned]
    differing = [
        character
        for character, text, words in zip(assigned, texts, graph_words(texts, name), strict=True)
        if words != reference_words(text, name)
    ]
    assert differing == []


@pytest.mark.parametrize("text", ["a" * 1001, "ab" * 77 + "aaa", "aaab aab ab aaaa", "\u4e2d" * 99])
def test_repeated_pairs_are_merged_like_the_reference(text):
    tokenizer = BytePairTokenizer.train(["aaaa aab aaab", "\u4e2d\u4e2d"] * 9, 290)
    assert tokenizer.encode_tensor(tf.constant([text])).to_list() == [tokenizer.encode(text)]


def test_a_vocabulary_without_merges_gives_bytes():
    tokenizer = BytePairTokenizer.train(["ab"], 257)
    ids = tokenizer.encode_tensor(tf.constant(["ab", "", "a\u4e2d"])).to_list()
    assert [len(row) for row in ids] == [2, 0, 4]
    assert ids == [tokenizer.encode(text) for text in ("ab", "", "a\u4e2d")]
