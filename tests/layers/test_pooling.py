import numpy as np
import pytest

from keras_arch.layers import FirstToken, MaxTokens, MeanTokens
from tests.layers import rows

VALID = np.array([[0, 0, 1, 1], [1, 0, 1, 0], [1, 1, 1, 1]], "bool")
X = rows.normal(3, 4, 5)
REFERENCES = {
    FirstToken: lambda real: real[0],
    MeanTokens: lambda real: real.mean(axis=0),
    MaxTokens: lambda real: real.max(axis=0),
}


@pytest.mark.parametrize("kind", REFERENCES)
def test_reads_the_real_tokens(kind):
    expected = [REFERENCES[kind](row[real]) for row, real in zip(X, VALID, strict=True)]
    for at_pads in (0.0, 1e30, np.nan):
        x = np.where(VALID[..., None], X, np.float32(at_pads))
        np.testing.assert_allclose(rows.run(kind(), x, VALID), expected, atol=1e-6)


@pytest.mark.parametrize("kind", REFERENCES)
def test_a_row_of_pads_gives_zeros(kind):
    found = rows.run(kind(), X, VALID & False)
    np.testing.assert_array_equal(found, np.zeros((3, 5)))
