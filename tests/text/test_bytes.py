import pytest
import tensorflow as tf

from keras_arch.text import ByteTokenizer

pytestmark = pytest.mark.once


def test_ids_are_the_bytes_of_utf8():
    tokenizer = ByteTokenizer()
    assert tokenizer.encode("a\u00e9\u4e2d\x00") == list("a\u00e9\u4e2d\x00".encode())
    assert tokenizer.vocabulary_size == 257
    assert tokenizer.special_ids == {"end": 256}
    assert tokenizer.start_id == 256


def test_special_tokens_follow_the_bytes():
    tokenizer = ByteTokenizer({"begin": "<s>", "end": "</s>", "pad": "</s>"})
    assert tokenizer.special_ids == {"begin": 256, "end": 257, "pad": 257}
    assert tokenizer.vocabulary_size == 258
    assert tokenizer.encode("a</s>", parse_special=True) == [97, 257]
    assert ByteTokenizer({}).special_ids == {}


def test_half_a_character_decodes_to_the_replacement_character():
    half = [*"\u4e2d".encode()[:2], 97]
    assert ByteTokenizer().decode(half) == "\ufffda"
    assert ByteTokenizer().decode_tensor(tf.constant([half])).numpy()[0].decode() == "\ufffda"


def test_a_half_surrogate_is_refused():
    with pytest.raises(ValueError, match=r"received '\\ud800' at position 1"):
        ByteTokenizer().encode("a\ud800")
