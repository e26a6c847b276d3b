import collections
import functools

import numpy as np
import pytest

from keras_arch.objectives import mixing_rates, prefix_split, span_corruption, span_counts
from keras_arch.text import ByteTokenizer, Pairs, mixed_pairs, task_pairs, window_pairs

pytestmark = pytest.mark.once

TOKENIZER = ByteTokenizer()
PAIRS = Pairs(["ab", "c", "d"], ["A B", "C", "D"])


def drawn(draw, count, seed=0):
    random = np.random.default_rng(seed)
    return [draw(random) for _ in range(count)]


def test_a_task_has_its_prefix_and_all_its_pairs():
    pairs = drawn(task_pairs(PAIRS, TOKENIZER, "upper: "), 50)
    texts = {(TOKENIZER.decode(source), TOKENIZER.decode(target)) for source, target in pairs}
    assert texts == {("upper: ab", "A B"), ("upper: c", "C"), ("upper: d", "D")}


def test_windows_come_from_everywhere():
    pairs = drawn(window_pairs(np.arange(10, 15, dtype="uint16"), 3, prefix_split), 100)
    rows = {tuple(np.concatenate(pair).tolist()) for pair in pairs}
    assert rows == {(10, 11, 12), (11, 12, 13), (12, 13, 14)}
    assert {len(source) for source, _ in pairs} == {1, 2}


def test_windows_are_corrupted_anew_each_time():
    corrupt = functools.partial(span_corruption, sentinel_ids=[99, 98, 97])
    pairs = drawn(window_pairs(range(40), 40, corrupt), 10)
    tokens, spans = span_counts(40)
    assert {len(source) for source, _ in pairs} == {40 - tokens + spans}
    assert len({tuple(source.tolist()) for source, _ in pairs}) > 5


@pytest.mark.parametrize("weights", [[1, 0, 3], mixing_rates([100, 200, 400], 2, limit=300)])
def test_a_mixture_draws_by_the_weights(weights):
    draws = [lambda random, i=i: ([i], [i]) for i in range(3)]
    counts = collections.Counter(
        source[0] for source, _ in drawn(mixed_pairs(draws, weights), 4000)
    )
    for i, weight in enumerate(weights):
        rate = weight / sum(weights)
        # Five standard deviations of a binomial count.
        assert abs(counts[i] - 4000 * rate) <= 5 * np.sqrt(4000 * rate * (1 - rate))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: task_pairs(Pairs([], []), TOKENIZER), "at least one; received 0 and 0"),
        (lambda: task_pairs(Pairs(["a"], []), TOKENIZER), "at least one; received 1 and 0"),
        (lambda: task_pairs(Pairs(["a", ""], ["b", "c"]), TOKENIZER), "'', 'c'.* in pair 1"),
        (lambda: window_pairs(range(5), 6, prefix_split), "ids, 5; received length=6"),
        (lambda: window_pairs(range(5), 0, prefix_split), "received length=0"),
        (lambda: window_pairs(range(5), 2, prefix_split, 4), "below vocabulary_size=4; received 4"),
        (lambda: mixed_pairs([], []), "at least one; received 0 and 0"),
        (lambda: mixed_pairs([len], [1, 2]), "at least one; received 1 and 2"),
        (lambda: mixed_pairs([len] * 2, [1, -0.5]), r"received weights\[1\]=-0.5"),
        (lambda: mixed_pairs([len], [float("nan")]), r"received weights\[0\]=nan"),
        (lambda: mixed_pairs([len] * 2, [0, 0]), "weights must not all be 0"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
