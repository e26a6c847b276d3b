import pytest
import tensorflow as tf

from keras_arch.text.first_space import FirstSpace

pytestmark = pytest.mark.once


def test_a_space_comes_before_what_begins_with_none():
    space = FirstSpace((" ", "\u2581", "[INST]", "a|b"))
    expected = {
        "x": " x",
        "": "",
        " x": " x",
        "\nx": " \nx",
        "\u2581": "\u2581",
        "[INST]\n x": "[INST]\n x",
        "[INST": " [INST",
        "a|b": "a|b",
        "a": " a",
        "\x00": " \x00",
    }
    assert [space.add(text) for text in expected] == [*expected.values()]
    texts = [*expected, b"\xff", b" \xff"]
    added = [text.decode() for text in space.add_tensor(tf.constant(texts)).numpy()]
    assert added == [*expected.values(), " \ufffd", " \ufffd"]
