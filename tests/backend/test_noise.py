import types

import keras
import numpy as np
import pytest

from keras_arch.backend import draws_by_hash, random_bits
from tests.references import noise

pytestmark = pytest.mark.skipif(
    keras.backend.backend() == "torch", reason="PyTorch draws by its own generator"
)
SIZE = 1 << 16


def draw(seed, shape=(SIZE,)):
    seed = keras.ops.convert_to_tensor(np.array(seed), dtype="int32")
    return keras.ops.convert_to_numpy(random_bits(seed, shape))


@pytest.mark.parametrize("seed", [(0, 0), (1337, 5), (2**31 - 1, 1)])
def test_equals_the_reference(seed):
    found = draw(seed, (3, 5, 7))
    assert (found.dtype, found.shape) == ("uint32", (3, 5, 7))
    assert found.ravel().tolist() == [noise.bits(seed, place) for place in range(3 * 5 * 7)]


@pytest.mark.parametrize("seed", [(0, 0), (1, 0), (123456789, 7)])
def test_each_bit_is_fair_and_independent_of_the_others(seed):
    bits = (draw(seed)[:, None] >> np.arange(32, dtype="uint32") & 1).astype("float64") * 2 - 1
    # Sums of n fair signs have the deviation sqrt(n): of some 1,000 none is beyond 5 of them.
    limit = 5 * SIZE**0.5
    assert np.abs(bits.sum(axis=0)).max() < limit
    products = bits.T @ bits
    assert np.abs(products - np.diag(np.diag(products))).max() < limit
    for lag in (1, 2, 3, 64, 128, 256, 384, 1024):
        assert np.abs((bits[lag:] * bits[:-lag]).sum(axis=0)).max() < limit, lag


@pytest.mark.parametrize(
    "others",
    [
        [(9, step) for step in range(1, 40)],  # the steps of one layer
        [(9 + i, 0) for i in range(1, 40)],  # layers whose seeds follow each other
        [(0, 9), (9, 9)],
    ],
)
def test_draws_of_other_seeds_are_independent(others):
    def dropped(seed):
        return (draw(seed) < 0.3 * 2**32) - 0.3

    first = dropped((9, 0))
    for other in others:
        # Of independent draws the mean product is 0, with deviation 0.3 * 0.7 / sqrt(n).
        assert abs((first * dropped(other)).mean()) < 5 * 0.21 / SIZE**0.5, other


def test_bytes_are_uniform():
    counts = np.bincount(draw((3, 4)) >> 24, minlength=256)
    expected = SIZE / 256
    chi_squared = ((counts - expected) ** 2 / expected).sum()
    assert 255 - 5 * (2 * 255) ** 0.5 < chi_squared < 255 + 5 * (2 * 255) ** 0.5


def test_it_is_the_way_to_draw_here():
    assert draws_by_hash()


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow only")
def test_not_where_operations_run_one_by_one(monkeypatch):
    import tensorflow as tf

    context = types.SimpleNamespace(num_replicas_in_sync=2)
    monkeypatch.setattr(tf.distribute, "get_replica_context", lambda: context)
    assert not draws_by_hash()
