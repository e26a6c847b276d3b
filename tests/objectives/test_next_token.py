import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_arch.objectives import next_token

TOKEN_IDS = np.array([[5, 6, 7, 8], [5, 6, 0, 0], [0, 0, 6, 7], [5, 0, 0, 0]], "int32")
VALID = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0]], "bool")


@pytest.mark.parametrize("convert", [np.asarray, ops.convert_to_tensor])
def test_shifts_by_one(convert):
    inputs, targets, weights = next_token(convert(TOKEN_IDS), convert(VALID))
    assert sorted(inputs) == ["token_ids", "valid"]
    to_numpy = ops.convert_to_numpy
    np.testing.assert_array_equal(to_numpy(inputs["token_ids"]), TOKEN_IDS[:, :-1])
    np.testing.assert_array_equal(to_numpy(inputs["valid"]), VALID[:, :-1])
    np.testing.assert_array_equal(to_numpy(targets), TOKEN_IDS[:, 1:])
    expected = [[1, 1, 1], [1, 0, 0], [0, 0, 1], [0, 0, 0]]
    np.testing.assert_array_equal(to_numpy(weights), expected)
    assert to_numpy(weights).dtype == bool


@pytest.mark.parametrize("convert", [np.asarray, ops.convert_to_tensor])
def test_predicts_nothing_across_documents(convert):
    segment_ids = np.array([[0, 0, 1, 1], [0, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]], "int32")
    inputs, targets, weights = next_token(convert(TOKEN_IDS), convert(VALID), convert(segment_ids))
    to_numpy = ops.convert_to_numpy
    np.testing.assert_array_equal(to_numpy(inputs["segment_ids"]), segment_ids[:, :-1])
    np.testing.assert_array_equal(to_numpy(targets), TOKEN_IDS[:, 1:])
    expected = [[1, 0, 1], [0, 0, 0], [0, 0, 1], [0, 0, 0]]
    np.testing.assert_array_equal(to_numpy(weights), expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((TOKEN_IDS, VALID[:, :3]), r"token_ids \(4, 4\), valid \(4, 3\)"),
        ((TOKEN_IDS[0], VALID[0]), r"token_ids \(4,\), valid \(4,\)"),
        ((TOKEN_IDS.tolist(), VALID), r"token_ids \(\), valid \(4, 4\)"),
        ((TOKEN_IDS, VALID, TOKEN_IDS[:1]), r"segment_ids \(1, 4\)"),
    ],
)
def test_other_shapes_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        next_token(*arguments)


@pytest.mark.once
@pytest.mark.parametrize("shape", [None, (None, 4), (4, None)])
def test_a_graph_need_not_know_the_shapes(shape):
    rows = [tf.TensorSpec(shape, tf.int32), tf.TensorSpec(shape, tf.bool)]
    _, targets, _ = tf.function(next_token, input_signature=rows)(TOKEN_IDS, VALID)
    np.testing.assert_array_equal(targets, TOKEN_IDS[:, 1:])
