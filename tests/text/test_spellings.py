import pytest
import tensorflow as tf

from keras_arch.text.spellings import SpellingTokenizer

pytestmark = pytest.mark.once


class Halves(SpellingTokenizer):
    """Two tokens that are a character together."""

    _spellings = [b"\xc3", b"\xa9", b"a"]
    special_ids = property(lambda self: {})
    _encode = _encode_tensor = _settings = _from_parts = None


def test_bytes_are_joined_before_they_are_read():
    tokenizer = Halves({})
    assert tokenizer.vocabulary_size == 3
    assert tokenizer.decode([2, 0, 1, 2]) == "a\u00e9a"
    ids = tf.ragged.constant([[2, 0, 1], [], [0, 2]])
    texts = [text.decode() for text in tokenizer.decode_tensor(ids).numpy()]
    assert texts == ["a\u00e9", "", "\ufffda"]
