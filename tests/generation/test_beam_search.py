import numpy as np
import pytest
from keras import ops

from keras_arch.generation import BeamSearch
from keras_arch.generation.beam_search import length_penalty


def number(x):
    return float(ops.convert_to_numpy(x))


def scores(alpha):
    totals, tokens = np.array([-1.0, -1.2], "float32"), np.array([2, 4], "int32")
    search = BeamSearch(2, length_penalty=alpha)
    return ops.convert_to_numpy(search.score(*map(ops.convert_to_tensor, (totals, tokens))))


def test_scores_are_totals_over_the_length_penalty():
    # ((5 + 2) / 6) ** 1 and ((5 + 4) / 6) ** 1.
    np.testing.assert_allclose(scores(1.0), [-1.0 / (7 / 6), -1.2 / 1.5], rtol=1e-6)
    np.testing.assert_allclose(scores(0.0), [-1.0, -1.2], rtol=1e-6)
    assert [int(np.argmax(scores(alpha))) for alpha in (0.0, 1.0, -1.0)] == [0, 1, 0]
    assert number(length_penalty(1, 0.7)) == 1.0


def test_beams_are_credited_with_what_their_score_may_become():
    total = ops.convert_to_tensor(np.float32(-2.0))

    def attainable(alpha, early_stopping):
        search = BeamSearch(2, alpha, early_stopping=early_stopping)
        return number(search.attainable(total, 1, 7))

    assert attainable(1.0, False) == -2.0
    assert attainable(1.0, "never") == -1.0
    # With a negative alpha, a shorter hypothesis is the better one.
    assert attainable(-1.0, "never") == -2.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0}, "width.*width=0"),
        ({"width": 2.5}, r"width=2\.5"),
        ({"n_best": 5}, "n_best=5, width=4"),
        ({"n_best": 0}, "n_best=0"),
        ({"groups": 3}, "groups=3, width=4"),
        ({"groups": -1}, "groups=-1"),
        ({"length_penalty": float("nan")}, "length_penalty.*=nan"),
        ({"length_penalty": float("inf")}, "length_penalty.*=inf"),
        ({"length_penalty": "high"}, "length_penalty='high'"),
        ({"coverage_penalty": -0.2}, r"coverage_penalty=-0\.2"),
        ({"coverage_penalty": float("nan")}, "coverage_penalty=nan"),
        ({"groups": 2, "diversity": -0.5}, r"diversity=-0\.5"),
        ({"groups": 2, "diversity": float("nan")}, "diversity=nan"),
        ({"diversity": 0.5}, r"diversity=0\.5, groups=1"),
        ({"early_stopping": "always"}, "early_stopping='always'"),
        ({"early_stopping": 1}, "early_stopping=1"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        BeamSearch(**{"width": 4, **options})
