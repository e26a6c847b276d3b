import numpy as np
import pytest
from keras import ops

from keras_arch.backend import top_places


def ranked(row):
    return sorted(range(len(row)), key=lambda place: (-row[place], place))


@pytest.mark.parametrize("k", [1, 3, 8, 20])
def test_of_equals_the_first_are_taken(k):
    # Few values, so that many are equal, also to the last of the k.
    x = np.random.default_rng(0).integers(0, 4, (50, 20)).astype("float32")
    x[-1] = 1.0
    places = ops.convert_to_numpy(top_places(ops.convert_to_tensor(x), k))
    assert places.tolist() == [ranked(row)[:k] for row in x]
