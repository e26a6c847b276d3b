import numpy as np

from keras_arch.layers import PutTokens
from tests.layers import rows


def test_puts_tokens_into_their_slots():
    token_ids = np.array([[5, 6, 7, 8], [1, 2, 3, 4]], "int32")
    slots = np.array([[3, 0, 0], [1, 0, 0]], "int32")
    given = np.array([[0, 9, -1], [9, -1, -1]], "int32")
    found = rows.run(PutTokens(), token_ids, slots, given)
    np.testing.assert_array_equal(found, [[9, 6, 7, 0], [1, 9, 3, 4]])
