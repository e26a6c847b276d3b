import numpy as np
import pytest

from keras_arch.objectives import label_pieces

pytestmark = pytest.mark.once

OPTIONS = {"length": 7, "classification_id": 2, "separator_id": 3}
TEXTS = [[[10, 11], [12], [], [13, 14, 15]], [[16]]]
LABELS = [[1, 0, 4, 2], [-1]]


def test_the_first_piece_of_a_word_has_its_label():
    inputs, targets = label_pieces(TEXTS, LABELS, **OPTIONS)
    expected = [[2, 10, 11, 12, 13, 14, 3], [2, 16, 3, 0, 0, 0, 0]]
    np.testing.assert_array_equal(inputs["token_ids"], expected)
    np.testing.assert_array_equal(targets, [[-1, 1, -1, 0, 2, -1, -1], [-1] * 7])


def test_every_piece_may_have_it():
    _, targets = label_pieces(TEXTS, LABELS, every_piece=True, **OPTIONS)
    np.testing.assert_array_equal(targets[0], [-1, 1, 1, 0, 2, 2, -1])


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        (TEXTS, LABELS[:1], "2 texts, 1 labels"),
        (TEXTS, [[1, 0, 4], [1]], "4 words and 3 labels in text 0"),
        ([[[-1]]], [[0]], "received -1"),
    ],
)
def test_bad_arguments_are_named(texts, labels, message):
    with pytest.raises(ValueError, match=message):
        label_pieces(texts, labels, **OPTIONS)
