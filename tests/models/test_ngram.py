import keras
import numpy as np
import pytest
from keras import ops

import keras_arch as ka

TOKEN_IDS = np.array([[1, 2, 3, 1, 2, 4], [3, 3, 1, 2, 3, 1]], "int32")
VALID = np.ones(TOKEN_IDS.shape, "bool")


def model_of(order, **options):
    options = {"width": 8, "bottleneck": 16, **options}
    return ka.models.ngram(ka.models.NGramConfig(vocabulary_size=5, order=order, **options))


def fit(model, inputs, targets, weights, epochs=600):
    model.compile(keras.optimizers.Adam(0.01), ka.objectives.TokenCrossentropy())
    return model.fit(
        inputs, targets, sample_weight=weights, batch_size=2, epochs=epochs, verbose=0
    ).history["loss"][-1]


def entropy(targets, contexts):
    """The nats per token of the best model that sees these contexts alone."""
    counts, given = {}, {}
    for target, context in zip(targets, contexts, strict=True):
        counts[context, target] = counts.get((context, target), 0) + 1
        given[context] = given.get(context, 0) + 1
    return -sum(n * np.log(n / given[context]) for (context, _), n in counts.items()) / len(targets)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_learns_what_its_window_tells(order):
    """The loss ends at the conditional entropy of the data: a figure by counting."""
    inputs, targets, weights = ka.objectives.next_token(TOKEN_IDS, VALID)
    contexts = [
        tuple(row[max(t + 2 - order, 0) : t + 1]) for row in TOKEN_IDS.tolist() for t in range(5)
    ]
    expected = entropy(targets.ravel().tolist(), contexts)
    assert fit(model_of(order), inputs, targets, weights) == pytest.approx(expected, abs=0.02)


def test_identity_through_the_bottleneck():
    inputs = {"token_ids": TOKEN_IDS, "valid": VALID}
    assert fit(model_of(2, bottleneck=4), inputs, TOKEN_IDS, VALID) < 0.05


def test_order_one_sees_nothing():
    logits = ops.convert_to_numpy(model_of(1)({"token_ids": TOKEN_IDS, "valid": VALID}))
    np.testing.assert_array_equal(logits, np.broadcast_to(logits[:1, :1], logits.shape))


@pytest.mark.parametrize("field", ["order", "width", "bottleneck", "initializer_range"])
def test_bad_sizes_are_named(field):
    with pytest.raises(ValueError, match=f"{field} must be .*positive.*; received {field}=0"):
        model_of(**{"order": 2, field: 0})
