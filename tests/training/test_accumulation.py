import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_arch as ka
from keras_arch.training import AdamW, average_weights, micro_batches
from tests.training import tiny


def repeated(number, count, lengths):
    """A dataset with `count` batches."""
    return tf.data.Dataset.from_tensors(tiny.batch(number, lengths)).repeat(count)


def trained(optimizer, dataset, updates, loss):
    keras.utils.set_random_seed(5)
    model = tiny.model()
    model.compile(optimizer, loss, jit_compile=False)
    model.fit(dataset, epochs=1, steps_per_epoch=updates, shuffle=False, verbose=0)
    return tiny.variables(model)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_two_micro_batches_of_2_and_6_tokens_equal_one_batch(smoothing):
    loss = ka.objectives.TokenCrossentropy
    data = repeated(1, 1, (2, 6))
    one = trained(keras.optimizers.SGD(1.0), data, 1, loss(smoothing))
    two = trained(
        keras.optimizers.SGD(1.0, gradient_accumulation_steps=2),
        micro_batches(data, 2),
        2,
        loss(smoothing, reduction="sum"),
    )
    start = trained(keras.optimizers.SGD(0.0), data, 1, loss())
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(b, a, atol=1e-6)
    assert max(np.abs(a - s).max() for a, s in zip(one, start, strict=True)) > 0.01


def test_three_clipped_adamw_updates_equal_those_of_large_batches():
    loss = ka.objectives.TokenCrossentropy
    data = repeated(2, 3, (6, 1, 2, 5))
    one = trained(AdamW(0.01, global_clipnorm=0.1), data, 3, loss())
    four = trained(
        AdamW(0.01, global_clipnorm=0.1, gradient_accumulation_steps=4),
        micro_batches(data, 4),
        12,
        loss(reduction="sum"),
    )
    for a, b in zip(one, four, strict=True):
        np.testing.assert_allclose(b, a, atol=1e-5)


def test_rows_keep_their_order_and_weights_sum_to_the_count():
    inputs, targets, weights = tiny.batch(3, (2, 6, 0, 5))
    parts = list(micro_batches(repeated(3, 1, (2, 6, 0, 5)), 2).as_numpy_iterator())
    assert len(parts) == 2
    np.testing.assert_array_equal(
        np.concatenate([p[0]["token_ids"] for p in parts]), inputs["token_ids"]
    )
    np.testing.assert_array_equal(np.concatenate([p[1] for p in parts]), targets)
    np.testing.assert_allclose(
        np.concatenate([p[2] for p in parts]), 2 * weights / weights.sum(), rtol=1e-6
    )


def test_a_batch_without_tokens_has_weight_zero():
    ids, valid = np.zeros((2, 5), "int32"), np.zeros((2, 5), bool)
    data = tf.data.Dataset.from_tensors(ka.objectives.next_token(ids, valid))
    for _, _, weights in micro_batches(data, 2):
        np.testing.assert_array_equal(weights, np.zeros((1, 4)))


@pytest.mark.parametrize("count", [0, 3])
def test_refuses_a_count_that_does_not_divide(count):
    with pytest.raises(ValueError, match=f"micro_batches.*{count}"):
        micro_batches(tiny.dataset(), count)


def test_an_unknown_batch_size_is_checked_when_a_batch_comes():
    data = tf.data.Dataset.from_tensor_slices(tiny.batch(0)).batch(2)
    assert data.element_spec[2].shape[0] is None
    rows = [weights.shape[0] for _, _, weights in micro_batches(data, 2)]
    assert rows == [1] * len(tiny.batch(0)[2])
    with pytest.raises(tf.errors.InvalidArgumentError):
        list(micro_batches(data, 3))


def test_evaluation_of_sums_is_the_mean_over_all_tokens():
    data = tiny.dataset().take(3)
    results = []
    for reduction, evaluated in (("token_mean", data), ("sum", average_weights(data))):
        keras.utils.set_random_seed(5)
        model = tiny.model()
        loss = ka.objectives.TokenCrossentropy(reduction=reduction)
        nats = ka.objectives.TokenNats(name="nats")
        model.compile(loss=loss, weighted_metrics=[nats], jit_compile=False)
        results.append(model.evaluate(evaluated, verbose=0, return_dict=True))
    expected = results[0]["nats"]
    assert results[1]["nats"] == pytest.approx(expected, rel=1e-5)
    assert results[1]["loss"] == pytest.approx(expected, rel=1e-5)


def ignoring(number, count):
    """Batches in which each row's second label is to be ignored, though its weight is 1."""
    inputs, targets, weights = tiny.batch(number, (2, 6, 3, 5))
    targets = np.where(np.arange(tiny.LENGTH) == 1, -1, targets)
    data = tf.data.Dataset.from_tensors((inputs, targets, weights)).repeat(count)
    return data, weights & (targets != -1)


def test_ignored_labels_do_not_count_as_tokens():
    data, real = ignoring(1, 1)
    parts = list(micro_batches(data, 2).as_numpy_iterator())
    weights = np.concatenate([weights for _, _, weights in parts])
    np.testing.assert_allclose(weights, 2 * real / real.sum(), rtol=1e-6)
    data, real = ignoring(1, 3)
    for _, _, weights in average_weights(data).as_numpy_iterator():
        np.testing.assert_allclose(weights, real / real.sum(), rtol=1e-6)


def test_a_dataset_without_tokens_has_weight_zero():
    inputs, targets, weights = tiny.batch(1)
    data = tf.data.Dataset.from_tensors((inputs, targets, np.zeros_like(weights)))
    for _, _, weights in average_weights(data):
        np.testing.assert_array_equal(weights, np.zeros_like(targets))
