import numpy as np
import pytest

from keras_arch.text.pair_rows import pad_pairs

pytestmark = pytest.mark.once


def test_pads_on_the_right_and_shifts_by_one():
    inputs, targets, weights = pad_pairs([([5, 6], [7, 8]), ([9], [4])], (3, 2), (3, 4), 1, 2)
    np.testing.assert_array_equal(inputs["source_ids"], [[5, 6], [9, 0], [0, 0]])
    np.testing.assert_array_equal(inputs["source_valid"], [[1, 1], [1, 0], [0, 0]])
    np.testing.assert_array_equal(inputs["token_ids"], [[1, 7, 8, 0], [1, 4, 0, 0], [0] * 4])
    np.testing.assert_array_equal(targets, [[7, 8, 2, 0], [4, 2, 0, 0], [0] * 4])
    valid = [[1, 1, 1, 0], [1, 1, 0, 0], [0] * 4]
    np.testing.assert_array_equal(inputs["valid"], valid)
    np.testing.assert_array_equal(weights, valid)
    assert {array.dtype.name for array in inputs.values()} == {"int32", "bool"}
