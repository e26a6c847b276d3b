import numpy as np
import pytest

import keras_arch as ka
from tests.references.kneser_ney import probability

pytestmark = pytest.mark.once

V = 6
#: Token 5 never occurs.
TEXT = np.random.default_rng(0).integers(0, 5, 40)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_equals_the_reference(order):
    model = ka.analysis.KneserNey(TEXT, order, V)
    other = np.random.default_rng(1).integers(0, V, 25)
    expected = [
        -np.log(probability(TEXT, other[:i].tolist(), token, order, V))
        for i, token in enumerate(other.tolist())
    ]
    np.testing.assert_allclose(model.nats(other), expected, rtol=1e-12)


@pytest.mark.parametrize("history", [[], [0], [3, 1], [5, 2], TEXT[-3:].tolist()])
def test_probabilities_add_up_to_one(history):
    model = ka.analysis.KneserNey(TEXT, 3, V)
    each = [model.nats([*history, token])[-1] for token in range(V)]
    assert np.exp(-np.array(each)).sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((TEXT, 0, V), "order must be a positive integer; received order=0"),
        ((TEXT, 2, 4), r"token_ids must lie in \[0, 4\); received 0 to 4"),
        (([], 2, V), r"n > 0; received shape \(0,\)"),
        (([1, 2], 3, V), "at least order=3 tokens; received 2"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        ka.analysis.KneserNey(*arguments)
