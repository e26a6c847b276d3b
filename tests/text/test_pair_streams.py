import functools

import numpy as np
import pytest
import tensorflow as tf

from keras_arch.objectives import descending_sentinels, span_corruption, span_counts
from keras_arch.text import (
    ByteTokenizer,
    Pairs,
    mixed_pairs,
    pair_stream,
    task_pairs,
    window_pairs,
)
from tests.references import denoising as reference

START, END, SIZE, LENGTH = 0, 1, 400, 40
SENTINELS = descending_sentinels(SIZE, 10)
IDS = np.random.default_rng(0).integers(2, 256, 500)
TOKENS, SPANS = span_counts(LENGTH)

DENOISING = window_pairs(IDS, LENGTH, functools.partial(span_corruption, sentinel_ids=SENTINELS))
TASK = task_pairs(Pairs(["ab", "c"], ["A B", "C"]), ByteTokenizer(), "upper: ")


def stream_of(draw=DENOISING, **options):
    defaults = {"batch_size": 4, "seed": 3, "source_length": LENGTH, "target_length": 10}
    return pair_stream(draw, **{**defaults, "start_id": START, "end_id": END, **options})


def take(dataset, count):
    return list(dataset.take(count).as_numpy_iterator())


def test_the_text_rebuilds_from_a_batch():
    windows = np.lib.stride_tricks.sliding_window_view(IDS, LENGTH).tolist()
    for inputs, targets, weights in take(stream_of(end_sources=True), 5):
        assert inputs["source_ids"].shape == (4, LENGTH)
        assert targets.shape == (4, 10)
        for i, (source, target) in enumerate(zip(inputs["source_ids"], targets, strict=True)):
            source, target = source[inputs["source_valid"][i]], target[weights[i]]
            assert len(source) == LENGTH - TOKENS + SPANS + 1
            assert len(target) == TOKENS + SPANS + 2
            assert source[-1] == target[-1] == END
            np.testing.assert_array_equal(inputs["token_ids"][i][weights[i]], [START, *target[:-1]])
            assert reference.rebuild(source[:-1], target[:-1], SENTINELS) in windows


def test_a_run_goes_on_at_any_step():
    mixture = mixed_pairs([DENOISING, TASK], [1, 2])
    whole = take(stream_of(mixture), 6)
    np.testing.assert_equal(take(stream_of(mixture, start_step=2), 4), whole[2:])
    other = take(stream_of(mixture, seed=4), 1)
    assert (other[0][0]["source_ids"] != whole[0][0]["source_ids"]).any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_size": 0}, "batch_size must be a positive integer; received batch_size=0"),
        ({"source_length": 0}, "received source_length=0"),
        ({"seed": -1}, "seed must be an integer, 0 or more; received seed=-1"),
        ({"end_id": -1}, "received end_id=-1"),
        ({"target_length": 1}, "received target_length=1"),
        ({"start_step": -1}, "received start_step=-1"),
    ],
)
def test_bad_arguments_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        stream_of(**changes)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda random: ([5] * (LENGTH + 1), [5]), "source_length=40 .* received 41 and 1"),
        (lambda random: ([5], [5] * 10), "target_length - 1=9 ids; received 1 and 10"),
        (lambda random: ([], [5]), "received 0 and 1"),
    ],
)
def test_a_pair_that_does_not_fit_is_no_batch(draw, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        take(stream_of(draw), 1)
