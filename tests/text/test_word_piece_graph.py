import pytest
import tensorflow as tf

from keras_arch.text.bert_words import BertWords
from keras_arch.text.word_piece_graph import WordPieceGraph
from tests.text.texts import TEXTS

pytestmark = pytest.mark.once


@pytest.mark.parametrize("lowercase", [False, True])
def test_words_are_those_of_python(lowercase):
    words = BertWords(lowercase, lowercase)
    graph = WordPieceGraph(["a", " ?"], " ?", words.table(), True, 100)
    texts = [*TEXTS, *(f"a{chr(code)}b" for code in [*range(0xD800), *range(0xE000, 0x110000, 7)])]
    received = graph.split_words(tf.constant(texts)).to_list()
    expected = [words.spread(text).split() for text in texts]
    assert [[word.decode() for word in row] for row in received] == expected
