import numpy as np
import pytest

from keras_arch.text import PairBatches

pytestmark = pytest.mark.once

START, END = 1, 2
RANDOM = np.random.default_rng(0)
SOURCES = [RANDOM.integers(3, 90, RANDOM.integers(1, 15)).tolist() for _ in range(50)]
TARGETS = [RANDOM.integers(3, 90, RANDOM.integers(1, 15)).tolist() for _ in range(50)]


def batches_of(sources=SOURCES, targets=TARGETS, **options):
    options = {"tokens": 40, "seed": 3, "lengths": (4, 8, 16)} | options
    return PairBatches(sources, targets, start_id=START, end_id=END, **options)


def rows_of(batches):
    """The pairs in batches, in their order, after a look at what surrounds them."""
    rows = []
    for inputs, targets, weights in batches:
        np.testing.assert_array_equal(weights, inputs["valid"])
        for name in ("source_ids", "token_ids"):
            valid = inputs["source_valid" if name == "source_ids" else "valid"]
            assert (inputs[name][~valid] == 0).all()
        parts = zip(
            *(inputs[k] for k in ("source_ids", "source_valid", "token_ids", "valid")),
            targets,
            strict=True,
        )
        for source, source_valid, token_ids, valid, target in parts:
            if not valid.any():
                assert not source_valid.any()
                continue
            assert token_ids[0] == START
            assert target[valid][-1] == END
            assert token_ids[valid][1:].tolist() == target[valid][:-1].tolist()
            rows.append((source[source_valid].tolist(), target[valid][:-1].tolist()))
    return rows


def test_each_pair_comes_once_an_epoch():
    batches = batches_of()
    rows = rows_of(batches.dataset(epochs=1).as_numpy_iterator())
    assert sorted(rows) == sorted(zip(SOURCES, TARGETS, strict=True))
    assert rows != rows_of(
        batches.dataset(start_step=batches.steps).take(batches.steps).as_numpy_iterator()
    )


def test_shapes_are_few_and_of_one_size():
    shapes = {targets.shape for _, targets, _ in batches_of().dataset(epochs=1)}
    assert shapes == {(10, 4), (5, 8), (2, 16)}
    doubled = batches_of(tokens=50, multiple=2)
    assert {targets.shape for _, targets, _ in doubled.dataset(epochs=1)} == {
        (12, 4),
        (6, 8),
        (2, 16),
    }


def test_a_row_has_the_shortest_length_that_holds_it():
    """The end of a target counts."""
    batches = batches_of([[3] * 4, [3] * 5, [3]], [[4], [4], [4] * 4])
    lengths = {}
    for inputs, targets, _ in batches.dataset(epochs=1).as_numpy_iterator():
        for source_valid, valid in zip(inputs["source_valid"], inputs["valid"], strict=True):
            lengths[int(source_valid.sum()), int(valid.sum())] = targets.shape[1]
    del lengths[0, 0]
    assert lengths == {(4, 2): 4, (5, 2): 8, (1, 5): 8}


def test_a_run_goes_on_at_any_step():
    batches = batches_of()
    whole = list(batches.dataset(epochs=2).as_numpy_iterator())
    assert len(whole) == 2 * batches.steps == len(batches.dataset(epochs=2))
    for start in (0, 1, batches.steps - 1, batches.steps, batches.steps + 3):
        rest = list(batches.dataset(start, epochs=2).as_numpy_iterator())
        np.testing.assert_equal(rest, whole[start:])
    endless = batches.dataset(start_step=1).take(3)
    np.testing.assert_equal(list(endless.as_numpy_iterator()), whole[1:4])


def test_without_a_seed_short_rows_come_first():
    batches = batches_of(seed=None)
    lengths = [targets.shape[1] for _, targets, _ in batches.dataset(epochs=1)]
    assert lengths == sorted(lengths)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sources": SOURCES[1:]}, "as many rows, at least one; received 49 and 50"),
        ({"sources": [[]], "targets": [[3]]}, "not be empty; received 0 and 1 tokens in row 0"),
        ({"sources": [[3]], "targets": [[3] * 16]}, "at most 16 .* received 1 and 17 in row 0"),
        ({"tokens": 15}, "tokens must be at least 16, multiple=1 rows of the largest .*tokens=15"),
        ({"tokens": 40, "multiple": 3}, "at least 48, multiple=3 rows .*tokens=40"),
        ({"seed": -1}, "seed must be an integer, 0 or more; received seed=-1"),
    ],
)
def test_bad_arguments_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        batches_of(**changes)
