import unicodedata

import pytest
import tensorflow as tf
import tokenizers

from keras_arch.text import BytePairTokenizer
from keras_arch.text.byte_pair_graph import split_words
from tests.text.texts import TEXTS

pytestmark = pytest.mark.once


def reference_words(text):
    """The words of the `tokenizers` package, GPT-2's."""
    splitter = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    return [text[start:end] for _, (start, end) in splitter.pre_tokenize_str(text)]


def graph_words(texts):
    return [[word.decode() for word in row] for row in split_words(tf.constant(texts)).to_list()]


def test_words_equal_the_reference():
    assert graph_words(TEXTS) == [reference_words(text) for text in TEXTS]


def test_every_assigned_character_is_split_like_the_reference():
    private_or_not_there = {"Cn", "Co", "Cs"}
    assigned = [
        chr(code)
        for code in range(0x110000)
        if unicodedata.category(chr(code)) not in private_or_not_there
    ]
    texts = [f"a{character}1 {character}." for character in assigned]
    differing = [
        character
        for character, text, words in zip(assigned, texts, graph_words(texts), strict=True)
        if words != reference_words(text)
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
