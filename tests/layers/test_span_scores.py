import numpy as np

from keras_arch.layers import SpanScores
from tests.layers import rows


def test_scores_starts_and_ends_and_never_pads():
    layer, x = SpanScores(), rows.normal(2, 4, 5)
    valid = np.array([[0, 1, 1, 1], [1, 1, 0, 0]], "bool")
    rows.run(layer, x, valid)
    rows.randomize(layer)
    kernel, bias = layer.get_weights()
    expected = np.swapaxes(x @ kernel + bias, 1, 2)
    found = rows.run(layer, x, valid)
    for row in range(2):
        real = valid[row]
        np.testing.assert_allclose(found[row][:, real], expected[row][:, real], atol=1e-5)
    chances = np.exp(found - found.max(axis=-1, keepdims=True))
    assert not chances.transpose(0, 2, 1)[~valid].any()
