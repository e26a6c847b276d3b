import numpy as np
import pytest

from keras_arch.layers import CausalLMHead
from tests.layers import rows

V = 11


@pytest.mark.parametrize("logit_cap", [None, 1.5])
@pytest.mark.parametrize("use_bias", [False, True])
def test_scores_every_token(use_bias, logit_cap):
    layer = CausalLMHead(V, use_bias, logit_cap)
    layer.build((None, None, rows.WIDTH))
    rows.randomize(layer)
    weights = layer.get_weights()
    assert len(weights) == 1 + use_bias
    x = rows.inputs()
    expected = x @ weights[0] + (weights[1] if use_bias else 0.0)
    if logit_cap is not None:
        assert abs(expected).max() > logit_cap
        expected = logit_cap * np.tanh(expected / logit_cap)
    np.testing.assert_allclose(rows.run(layer, x), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"vocabulary_size": 0}, "vocabulary_size=0"),
        ({"vocabulary_size": 4, "logit_cap": 0.0}, "logit_cap=0.0"),
    ],
)
def test_names_the_bad_argument(options, words):
    with pytest.raises(ValueError, match=words):
        CausalLMHead(**options)
