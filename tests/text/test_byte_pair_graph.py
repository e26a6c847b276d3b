import unicodedata

import tensorflow as tf
import tokenizers

from keras_arch.text.byte_pair_graph import LETTERS, split_words
from tests.text.texts import TEXTS


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


def test_letters_stand_for_bytes_and_are_letters():
    # keras_nlp never cuts a run of letters: what the hand-over rests on.
    assert len(set(LETTERS)) == 256
    assert all(letter.isalpha() for letter in LETTERS)
