import numpy as np
import pytest

from keras_arch.objectives.rows import checked_row, generator

pytestmark = pytest.mark.once


@pytest.mark.parametrize("ids", [[3, 1], (3, 1), np.array([3, 1], "uint16")])
def test_ids_become_a_copy_of_int32(ids):
    checked = checked_row(token_ids=ids, least=2, vocabulary_size=4)
    assert checked.dtype == "int32"
    np.testing.assert_array_equal(checked, [3, 1])
    assert not np.shares_memory(checked, np.asarray(ids))
    assert checked_row(token_ids=[]).shape == (0,)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1.0], "token_ids must be integers .* received shape \\(1,\\), dtype float64"),
        ([[1]], "received shape \\(1, 1\\)"),
        (1, "received shape \\(\\)"),
        ([], "token_ids must hold at least 1 ids; received 0"),
        ([1, -2], "token_ids must lie in \\[0, 9\\); received -2"),
        ([9], "token_ids must lie in \\[0, 9\\); received 9"),
    ],
)
def test_other_ids_are_named(ids, message):
    with pytest.raises(ValueError, match=message):
        checked_row(token_ids=ids, least=1, vocabulary_size=9)


def test_a_seed_gives_a_generator():
    assert generator(3).integers(1 << 60) == np.random.default_rng(3).integers(1 << 60)
    random = np.random.default_rng(0)
    assert generator(random) is random


@pytest.mark.parametrize("seed", [-1, None, 0.5, True])
def test_other_seeds_are_named(seed):
    with pytest.raises(ValueError, match=f"seed must be .* received seed={seed}"):
        generator(seed)
