import hashlib

import numpy as np
import pytest
import tensorflow as tf

from keras_arch.training import Checkpoints, batch_digest
from keras_arch.training.non_finite import batch_digests, last_checkpoint

pytestmark = pytest.mark.once


def test_the_digest_is_of_type_shape_and_content():
    batch = {"b": tf.constant([[1, 2]], "int32")}, tf.constant([True])
    expected = hashlib.sha256(b"int32(1, 2)\x01\0\0\0\x02\0\0\0bool(1,)\x01").hexdigest()
    assert batch_digest(batch) == expected


@pytest.mark.parametrize("other", [[[2, 1]], [[1], [2]], [[1.0, 2.0]]])
def test_other_rows_have_another_digest(other):
    assert batch_digest(np.array([[1, 2]])) != batch_digest(np.array(other))


def test_the_digests_of_some_batches():
    rows = np.array([[1], [2], [3], [4]])
    found = batch_digests(tf.data.Dataset.from_tensor_slices(rows), 1, 2)
    assert found == [batch_digest(rows[1]), batch_digest(rows[2])]


def test_a_distributed_dataset_is_not_read():
    assert batch_digests(object(), 0, 2) == []


def test_says_where_to_go_on_from():
    assert last_checkpoint(Checkpoints("here"), 0) == "There is no checkpoint before it."
    found = last_checkpoint(Checkpoints("here"), 12)
    assert found == "The last good checkpoint, after step 12, is here/step-00000012."
