import collections

import numpy as np
import pytest

from keras_arch.objectives import random_spans, span_counts
from tests.references import denoising as reference

pytestmark = pytest.mark.once


@pytest.mark.parametrize(("rate", "mean_length"), [(0.15, 3.0), (0.5, 3.0), (0.3, 1.0)])
def test_counts_are_those_of_the_reference(rate, mean_length):
    for length in range(2, 600):
        expected = reference.span_counts(length, rate, mean_length)
        assert span_counts(length, rate, mean_length) == expected


def test_counts_by_hand():
    # The paper's: 512 tokens, 15 %, 3: 76.8 and 25.67.
    assert span_counts(512) == (77, 26)
    assert span_counts(2) == (1, 1)
    assert span_counts(30) == (4, 1)
    assert span_counts(31) == (5, 2)
    # 28.5 in float64, which is even at 28; T5's float32 has it a little above.
    assert span_counts(190)[0] == 29
    # Each span needs a token before it that is kept.
    assert span_counts(10, rate=0.8, mean_length=1) == (8, 2)


@pytest.mark.parametrize(("rate", "mean_length"), [(0.15, 3.0), (0.8, 1)])
def test_each_row_has_exactly_the_counts(rate, mean_length):
    random = np.random.default_rng(0)
    for length in range(2, 300):
        noise = random_spans(length, random, rate, mean_length)
        assert noise.shape == (length,)
        assert not noise[0]
        assert noise[-1]
        counts = (noise.sum(), len(reference.spans(noise)))
        assert counts == span_counts(length, rate, mean_length)


def test_all_masks_are_equally_likely():
    # 6 tokens, 3 of them noise, in 2 spans: 2 ways to part the noise, 2 to part the rest.
    random = np.random.default_rng(0)
    masks = collections.Counter(
        tuple(random_spans(6, random, rate=0.5, mean_length=1.5).tolist()) for _ in range(4000)
    )
    assert len(masks) == 4
    # Five standard deviations of a binomial count.
    assert all(abs(count - 1000) < 5 * np.sqrt(4000 * 0.25 * 0.75) for count in masks.values())


def test_the_rate_and_the_mean_length_hold_over_many_tokens():
    random = np.random.default_rng(1)
    rows = [random_spans(length, random) for length in random.integers(100, 600, 1000).tolist()]
    noise, total = sum(row.sum() for row in rows), sum(len(row) for row in rows)
    assert abs(noise / total - 0.15) < 0.0015
    assert abs(noise / sum(len(reference.spans(row)) for row in rows) - 3) < 0.03


def test_the_mask_depends_on_the_seed_alone():
    np.testing.assert_array_equal(random_spans(100, 7), random_spans(100, 7))
    assert (random_spans(100, 7) != random_spans(100, 8)).any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"length": 1}, "length must be at least 2; received length=1"),
        ({"length": 2.5}, "length must be a positive integer; received length=2.5"),
        ({"rate": 0.0}, "rate must be between 0 and 1; received rate=0.0"),
        ({"rate": 1.0}, "received rate=1.0"),
        ({"rate": float("nan")}, "received rate=nan"),
        ({"mean_length": 0.9}, "mean_length must be at least 1; received mean_length=0.9"),
        ({"mean_length": float("inf")}, "received mean_length=inf"),
        ({"seed": -1}, "received seed=-1"),
    ],
)
def test_bad_arguments_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        random_spans(**{"length": 10, "seed": 0} | changes)
