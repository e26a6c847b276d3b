import sys

import pytest
import tensorflow as tf

from keras_arch.text import UnicodeTokenizer

pytestmark = pytest.mark.once


def test_ids_are_code_points():
    tokenizer = UnicodeTokenizer()
    assert tokenizer.encode("a\u00e9\U0001f468\x00") == [0x61, 0xE9, 0x1F468, 0]
    assert tokenizer.vocabulary_size == sys.maxunicode + 3
    assert tokenizer.special_ids == {"unknown": sys.maxunicode + 1, "end": sys.maxunicode + 2}


def test_every_character_comes_back():
    tokenizer = UnicodeTokenizer()
    text = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert tokenizer.encode_tensor(tf.constant([text])).to_list() == [ids]
    assert tokenizer.decode_tensor(tf.constant([ids])).numpy()[0].decode() == text


def test_code_points_beyond_the_limit_are_unknown():
    tokenizer = UnicodeTokenizer(0x80, {"pad": "<pad>"})
    assert tokenizer.vocabulary_size == 0x82
    ids = [0x7F, 0x80, 0x80, 0x80]
    assert tokenizer.encode("\x7f\x80\u4e2d\U0001f468") == ids
    assert tokenizer.encode_tensor(tf.constant(["\x7f\x80\u4e2d\U0001f468"])).to_list() == [ids]
    assert tokenizer.decode([*ids, 0x81]) == "\x7f\ufffd\ufffd\ufffd<pad>"


def test_half_a_surrogate_pair_is_unknown():
    tokenizer = UnicodeTokenizer()
    assert tokenizer.encode("a\ud800") == [0x61, tokenizer.special_ids["unknown"]]
    assert tokenizer.decode([0x61, 0xD800]) == "a\ufffd"
    assert tokenizer.decode_tensor(tf.constant([[0x61, 0xD800]])).numpy()[0].decode() == "a\ufffd"


@pytest.mark.parametrize("code_points", [0, -1, 0x110001, 100.0, True, None, "100"])
def test_a_wrong_number_of_code_points_is_refused(code_points):
    with pytest.raises(ValueError, match=f"received code_points={code_points!r}"):
        UnicodeTokenizer(code_points)


def test_the_unknown_token_has_no_name():
    with pytest.raises(ValueError, match="must not name the unknown token"):
        UnicodeTokenizer(100, {"unknown": "<unk>"})
