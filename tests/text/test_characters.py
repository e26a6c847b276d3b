import pytest
import tensorflow as tf

from keras_arch.text import CharacterTokenizer

pytestmark = pytest.mark.once


def test_characters_are_numbered_in_the_order_of_code_points():
    tokenizer = CharacterTokenizer.from_text("banana \u4e2d")
    assert tokenizer.characters == (" ", "a", "b", "n", "\u4e2d")
    assert tokenizer.vocabulary_size == 6
    assert tokenizer.encode("nab \u4e2d") == [4, 2, 3, 1, 5]


def test_unknown_characters_get_id_0_and_decode_to_the_replacement_character():
    tokenizer = CharacterTokenizer.from_text("ab")
    assert tokenizer.special_ids == {"unknown": 0}
    assert tokenizer.encode("a\u00e9\ud800b") == [1, 0, 0, 2]
    assert tokenizer.decode([1, 0, 2]) == "a\ufffdb"
    assert tokenizer.encode_tensor(tf.constant(["a\u00e9b"])).to_list() == [[1, 0, 2]]
    assert tokenizer.decode_tensor(tf.constant([[1, 0, 2]])).numpy()[0].decode() == "a\ufffdb"


@pytest.mark.parametrize(
    ("characters", "message"),
    [
        ("", "must not be empty"),
        ("aa", "2 characters, 1 of them distinct"),
        (["ab"], "received characters with 'ab'"),
        (["\ud800"], "received characters with"),
    ],
)
def test_wrong_characters_are_refused(characters, message):
    with pytest.raises(ValueError, match=message):
        CharacterTokenizer(characters)


def test_an_empty_text_is_refused():
    with pytest.raises(ValueError, match="text must not be empty"):
        CharacterTokenizer.from_text("")
