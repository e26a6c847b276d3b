import pytest
import tensorflow as tf

from keras_arch.text.literals import Literals

pytestmark = pytest.mark.once

LITERALS = Literals({"<a>": [1], "<a>>": [2, 2], ".*": [3], "\u4e2d": [4]})


def lengths(text):
    """Encodes a text as 100 plus its length; nothing as nothing."""
    return [100 + len(text)] if text else []


def lengths_tensor(texts):
    filled = texts != ""
    values = 100 + tf.strings.length(texts, unit="UTF8_CHAR")
    return tf.RaggedTensor.from_row_lengths(values[filled], tf.cast(filled, tf.int64))


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", []),
        ("plain", [105]),
        ("<a>", [1]),
        ("x<a>yy<a>", [101, 1, 102, 1]),
        ("<a>>", [2, 2]),  # The longest.
        ("<<a>>>", [101, 2, 2, 101]),
        ("a.*b", [101, 3, 101]),
        ("ab", [102]),  # A literal is no pattern.
        ("\u4e2d\u4e2d\n\n", [4, 4, 102]),
    ],
)
def test_literals_get_their_ids_and_the_rest_is_encoded(text, ids):
    assert LITERALS.encode(text, lengths) == ids
    assert LITERALS.encode_tensor(tf.constant([text, "", text]), lengths_tensor).to_list() == [
        ids,
        [],
        ids,
    ]


def test_without_literals_the_whole_text_is_encoded():
    assert Literals({}).encode("abc", lengths) == [103]
    assert Literals({}).encode_tensor(tf.constant(["abc"]), lengths_tensor).to_list() == [[103]]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("x <m> y", [101, 1, 102]),
        ("x\u2003\n\u00a0<m><m> <m>", [101, 1, 1, 1]),
        (" <m", [103]),
        ("x <n> y", [102, 2, 102]),
        ("<n> <m>", [2, 1]),
    ],
)
def test_a_literal_may_take_the_white_space_before_it(text, ids):
    literals = Literals({"<m>": [1], "<n>": [2]}, takes_space=["<m>"])
    assert literals.encode(text, lengths) == ids
    assert literals.encode_tensor(tf.constant([text]), lengths_tensor).to_list() == [ids]
