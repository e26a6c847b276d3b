import numpy as np

from keras_arch.layers import SampleTokens
from tests.layers import rows


def test_draws_by_the_softmax():
    chances = np.array([0.1, 0.2, 0.7])
    logits = np.tile(np.log(chances).astype("float32"), (40, 500, 1))
    layer = SampleTokens(seed=3)
    first, second = (rows.run(layer, logits) for _ in range(2))
    assert first.shape == (40, 500)
    assert not np.array_equal(first, second)
    # Three standard deviations of a share of 20,000 draws.
    counts = np.bincount(first.ravel()) / first.size
    np.testing.assert_array_less(abs(counts - chances), 3 * (chances * (1 - chances) / 2e4) ** 0.5)
