import collections

import numpy as np
import pytest

from keras_arch.objectives import prefix_split

pytestmark = pytest.mark.once


def test_the_parts_make_the_row_and_all_places_come_up():
    random = np.random.default_rng(0)
    cuts = collections.Counter()
    for _ in range(4000):
        inputs, targets = prefix_split([7, 3, 3, 9, 1], random)
        assert [*inputs, *targets] == [7, 3, 3, 9, 1]
        assert inputs.dtype == targets.dtype == "int32"
        cuts[len(inputs)] += 1
    assert set(cuts) == {1, 2, 3, 4}
    # Five standard deviations of a binomial count.
    assert all(abs(count - 1000) < 5 * np.sqrt(4000 * 0.25 * 0.75) for count in cuts.values())


def test_the_split_depends_on_the_seed_alone():
    first, again, other = (prefix_split(range(1000), seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first[0], again[0])
    assert len(first[0]) != len(other[0])


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="token_ids must hold at least 2 ids; received 1"):
        prefix_split([5], 0)
    with pytest.raises(ValueError, match="received seed=None"):
        prefix_split([5, 6], None)
