import numpy as np
import pytest
from keras import ops

from keras_arch.layers import AlibiBias, RelativeBias, relative_bucket
from keras_arch.layers.relative_bias import alibi_slopes
from tests.layers import rows
from tests.references import positions as reference

HEADS = 4


@pytest.mark.parametrize(
    ("distance", "bidirectional", "bucket"),
    [
        (-1, True, 1),
        (1, True, 17),
        (-8, True, 8),
        (-16, True, 10),
        (-128, True, 15),
        (-16, False, 16),
        (-128, False, 31),
        (3, False, 0),
    ],
)
def test_known_buckets(distance, bidirectional, bucket):
    found = relative_bucket(ops.convert_to_tensor([distance]), 32, 128, bidirectional)
    assert ops.convert_to_numpy(found)[0] == bucket


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("buckets", "max_distance"), [(32, 128), (8, 20), (64, 256), (4, 3)])
def test_every_bucket_equals_the_reference(buckets, max_distance, bidirectional):
    distances = np.arange(-300, 301, dtype="int32")
    found = relative_bucket(ops.convert_to_tensor(distances), buckets, max_distance, bidirectional)
    found = ops.convert_to_numpy(found)
    assert found.dtype == np.int32
    expected = [
        reference.t5_bucket(distance, buckets, max_distance, bidirectional)
        for distance in distances.tolist()
    ]
    np.testing.assert_array_equal(found, expected)
    assert 0 <= found.min() <= found.max() < buckets


def relative_bias(bidirectional=False):
    layer = RelativeBias(HEADS, buckets=8, max_distance=5, bidirectional=bidirectional)
    layer.build((None, None))
    return rows.randomize(layer)


@pytest.mark.parametrize("bidirectional", [True, False])
def test_relative_bias_equals_the_reference(bidirectional):
    layer = relative_bias(bidirectional)
    found = rows.run(layer, rows.POSITIONS)
    table = layer.get_weights()[0]
    expected = reference.relative_bias(rows.POSITIONS, table, 5, bidirectional)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("heads", [1, 2, 3, 8, 12, 20])
def test_alibi_slopes_equal_the_reference(heads):
    np.testing.assert_allclose(alibi_slopes(heads), reference.alibi_slopes(heads), rtol=1e-12)


def test_alibi_slopes_of_the_paper():
    # Section 3: for 8 heads 1/2, 1/4, ..., 1/256.
    np.testing.assert_allclose(alibi_slopes(8), 0.5 ** np.arange(1, 9))


def test_alibi_bias_equals_the_reference():
    found = rows.run(AlibiBias(HEADS), rows.POSITIONS)
    expected = reference.alibi_bias(rows.POSITIONS, HEADS)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("chunks", rows.CHUNKS)
@pytest.mark.parametrize("make", [relative_bias, lambda: AlibiBias(HEADS)])
def test_steps_equal_the_call(make, chunks):
    layer = make()
    whole = rows.run(layer, rows.POSITIONS)
    cursor = 0
    for output in rows.step_through(layer, chunks, rows.POSITIONS):
        end = cursor + output.shape[2]
        assert output.shape[3] == rows.TIME
        np.testing.assert_allclose(output[..., :end], whole[:, :, cursor:end, :end], atol=1e-5)
        cursor = end


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: RelativeBias(0), "heads=0"),
        (lambda: RelativeBias(2, buckets=7), "buckets=7"),
        (lambda: RelativeBias(2, buckets=2), "buckets=2"),
        (lambda: RelativeBias(2, buckets=32, max_distance=16), "max_distance=16"),
        (lambda: AlibiBias(-1), "heads=-1"),
        (lambda: AlibiBias(2.5), "heads=2.5"),
    ],
)
def test_names_the_bad_argument(make, words):
    with pytest.raises(ValueError, match=words):
        make()
