import re

import pytest
import regex
import tensorflow as tf

from keras_arch.text.white_space import LINE_END, SPACE, WITHIN_LINE

pytestmark = pytest.mark.once


def test_the_characters_are_unicodes():
    characters = [chr(code) for code in range(0xD800)]
    expected = [character for character in characters if regex.match(r"\p{White_Space}", character)]
    assert [x for x in characters if re.match(f"[{SPACE}]", x)] == expected
    assert [x for x in expected if not re.match(f"[{WITHIN_LINE}]", x)] == sorted(LINE_END)
    found = tf.strings.regex_full_match(tf.constant(characters), f"[{SPACE}]").numpy()
    assert [x for x, is_space in zip(characters, found, strict=True) if is_space] == expected
