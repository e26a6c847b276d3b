import pytest
import tensorflow as tf

from keras_arch.text.word_joiner import WordJoiner

pytestmark = pytest.mark.once

PIECES = [
    "a",
    "##b",
    "\u4e2d",
    "\u6587",
    "\u3002",
    "##\u3042",
    "\u30a2",
    "[SEP]",
    "##",
    ".",
    "\uac00",
]


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ([], ""),
        (["a", "a"], "a a"),
        (["a", "##b", "##b", "a"], "abb a"),
        (["##b", "a"], "b a"),
        (["\u4e2d", "\u6587", "\u3002", "\u30a2"], "\u4e2d\u6587\u3002\u30a2"),
        (["a", "\u4e2d", "a"], "a \u4e2d a"),
        (["\u30a2", "##\u3042", "\u4e2d"], "\u30a2\u3042\u4e2d"),
        (["\u4e2d", "##b", "\u4e2d"], "\u4e2db \u4e2d"),
        (["\uac00", "\uac00"], "\uac00 \uac00"),  # Korean is written with spaces.
        (["a", "##", "[SEP]", "."], "a ## [SEP] ."),
    ],
)
def test_spaces_go_between_words(pieces, text):
    ids = [PIECES.index(piece) for piece in pieces]
    joiner = WordJoiner(PIECES)
    assert joiner.join(ids) == text
    rows = tf.ragged.constant([[0, 1], ids, ids, []], tf.int32)
    joined = [row.decode() for row in joiner.join_tensor(rows).numpy()]
    assert joined == ["ab", text, text, ""]
    if ids:
        assert joiner.join_tensor(tf.constant([ids])).numpy()[0].decode() == text
