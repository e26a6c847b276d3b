import numpy as np

from keras_arch.layers import TakeTokens
from tests.layers import rows


def test_takes_the_slots_of_each_row():
    x = rows.normal(2, 4, 5)
    slots = np.array([[3, 0, 0], [1, 1, 2]], "int32")
    expected = np.stack([row[places] for row, places in zip(x, slots, strict=True)])
    np.testing.assert_array_equal(rows.run(TakeTokens(), x, slots), expected)
