import gc

import pytest
import tensorflow as tf

from keras_arch.text.sentence_piece_graph import SentencePieceModel

pytestmark = pytest.mark.once


def test_a_model_made_inside_a_graph_outlives_seeding_and_its_twin(tokenizers):
    tokenizer = tokenizers["unigram"]
    texts = ["a b", "", "\u4e2d"]
    expected = [tokenizer.encode(text) for text in texts]
    model, twin = SentencePieceModel(tokenizer.model), SentencePieceModel(tokenizer.model)
    assert model.encode(tf.constant(texts)).to_list() == expected
    tf.random.set_seed(3)
    assert model.encode(tf.constant(texts)).to_list() == expected
    assert twin.encode(tf.constant(texts)).to_list() == expected
    del twin
    gc.collect()
    tf.random.set_seed(4)
    assert model.encode(tf.constant(texts)).to_list() == expected
