import functools

import numpy as np
import pytest

from keras_arch import objectives

pytestmark = pytest.mark.once

PAD, BEGIN, END, MASK, STOP = range(5)
SPECIAL = (PAD, BEGIN, END)
NOISES = {
    "mask": functools.partial(objectives.mask_tokens, mask_id=MASK),
    "delete": objectives.delete_tokens,
    "infill": functools.partial(objectives.infill_text, mask_id=MASK),
    "permute": functools.partial(objectives.permute_sentences, stop_ids=[STOP]),
    "rotate": objectives.rotate_document,
}


def row_of(random):
    """A row of two documents with an end inside and pads behind, full stops between."""
    sizes = random.integers(1, 60, 2)
    tokens = random.permutation(np.arange(10, 10 + sizes.sum()))
    tokens[5::6] = STOP
    return np.concatenate(
        [[BEGIN], tokens[: sizes[0]], [END, BEGIN], tokens[sizes[0] :], [END, PAD, PAD]]
    )


def without(ids, *others):
    return ids[~np.isin(ids, others)]


@pytest.mark.parametrize("name", NOISES)
def test_special_tokens_are_never_touched(name):
    random = np.random.default_rng(0)
    for _ in range(100):
        ids = row_of(random)
        before = ids.copy()
        noised = NOISES[name](ids, random, special_ids=SPECIAL)
        np.testing.assert_array_equal(ids, before)
        assert noised.dtype == "int32"
        # They keep their order, those at the ends their place; no token comes from nowhere.
        special = ids[np.isin(ids, SPECIAL)]
        np.testing.assert_array_equal(noised[np.isin(noised, SPECIAL)], special)
        assert noised[0] == BEGIN
        np.testing.assert_array_equal(noised[-3:], [END, PAD, PAD])
        assert set(noised) <= {*ids, MASK}
        if len(noised) == len(ids) and name != "infill":
            where = np.isin(ids, SPECIAL)
            np.testing.assert_array_equal(noised[where], special)


@pytest.mark.parametrize("name", NOISES)
def test_the_noise_depends_on_the_seed_alone(name):
    ids = np.arange(10, 210)
    ids[6::7] = STOP
    first, again, other = (NOISES[name](ids, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("name", ["mask", "delete", "infill"])
@pytest.mark.parametrize("rate", [0.15, 0.3])
def test_the_rate_holds_over_many_tokens_of_short_rows(name, rate):
    random = np.random.default_rng(0)
    kept = total = 0
    for size in random.integers(2, 40, 2000):
        noised = NOISES[name](np.arange(10, 10 + size), random, rate=rate)
        kept += len(without(noised, MASK))
        total += size
    assert abs(1 - kept / total - rate) < 0.01 * rate


def test_masks_stand_where_the_tokens_stood():
    ids = np.arange(10, 1010)
    masked = objectives.mask_tokens(ids, 0, MASK)
    assert (masked == MASK).sum() == 300
    np.testing.assert_array_equal(masked[masked != MASK], ids[masked != MASK])


def test_what_is_not_deleted_keeps_its_order():
    deleted = objectives.delete_tokens(np.arange(10, 1010), 0)
    assert len(deleted) == 700
    assert (np.diff(deleted) > 0).all()
    for seed in range(50):
        assert len(objectives.delete_tokens([10, 11], seed, rate=0.99)) == 1


class TestInfilling:
    def test_a_mask_stands_for_each_span(self):
        random = np.random.default_rng(0)
        masks = 0
        for _ in range(500):
            ids = np.arange(10, 210)
            noised = objectives.infill_text(ids, random, MASK)
            kept = without(noised, MASK)
            assert len(kept) == 140
            assert (np.diff(kept) > 0).all()
            masks += (noised == MASK).sum()
            # A gap in the ids is where a mask is; elsewhere masks stand for nothing.
            marked = np.concatenate([[9], noised, [210]])
            real = np.flatnonzero(marked != MASK)
            gaps = np.diff(marked[real]) > 1
            assert (np.diff(real)[gaps] > 1).all()
        # Lengths drawn from Poisson(3) until they reach 60, by simulation of the draws alone.
        draws = random.poisson(3.0, (20000, 100)).cumsum(axis=1)
        expected = ((draws < 60).sum(axis=1) + 1).mean()
        assert abs(masks / 500 - expected) < 0.5

    def test_a_span_of_length_0_inserts_a_mask(self):
        # One token of five is masked, by the first length that is not 0.
        random = np.random.default_rng(0)
        inserted = []
        for _ in range(2000):
            noised = objectives.infill_text([10, 11, 12, 13, 14], random, MASK, rate=0.2)
            assert len(without(noised, MASK)) == 4
            inserted.append(len(noised) - 5)
        # As many as there are zeros before it: geometric, P(0) = exp(-3).
        zero = np.exp(-3)
        assert min(inserted) == 0
        assert abs(np.mean(inserted) - zero / (1 - zero)) < 0.02

    def test_each_place_is_masked_as_often(self):
        random = np.random.default_rng(0)
        counts = np.zeros(60)
        for _ in range(2000):
            noised = objectives.infill_text(np.arange(10, 70), random, MASK)
            counts[without(noised, MASK) - 10] += 1
        masked = 1 - counts / 2000
        # No span crosses an end of the row, so the tokens there have fewer spans to be in.
        inner = masked[15:45]
        assert abs(inner - inner.mean()).max() < 5 * np.sqrt(0.3 * 0.7 / 2000)
        assert abs(masked[:30].mean() - masked[30:].mean()) < 0.01

    def test_masks_that_stand_there_stay(self):
        ids = np.array([10, MASK, 11, MASK])
        assert (objectives.infill_text(ids, 0, MASK, rate=0.5) == MASK).sum() >= 3
        np.testing.assert_array_equal(objectives.mask_tokens([MASK] * 3, 0, MASK), [MASK] * 3)


def test_sentences_are_shuffled_whole():
    ids = [BEGIN, 10, 11, STOP, 12, STOP, STOP, 13, 14, END]
    seen = set()
    for seed in range(100):
        noised = objectives.permute_sentences(ids, seed, [STOP], SPECIAL)
        assert (noised[0], noised[-1]) == (BEGIN, END)
        seen.add(tuple(noised[1:-1].tolist()))
    a, b, c = (10, 11, STOP), (12, STOP, STOP), (13, 14)
    assert seen == {a + b + c, a + c + b, b + a + c, b + c + a, c + a + b, c + b + a}


def test_a_rotation_begins_anywhere():
    seen = {
        tuple(objectives.rotate_document([BEGIN, 10, 11, 12, END], seed, SPECIAL).tolist())
        for seed in range(50)
    }
    expected = [(10, 11, 12), (11, 12, 10), (12, 10, 11)]
    assert seen == {(BEGIN, *turned, END) for turned in expected}


@pytest.mark.parametrize("ids", [[], [PAD, PAD]])
@pytest.mark.parametrize("name", NOISES)
def test_a_row_without_a_document_stays(name, ids):
    np.testing.assert_array_equal(NOISES[name](ids, 0, special_ids=SPECIAL), ids)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("mask", {"rate": 0}, "rate must be between 0 and 1; received rate=0"),
        ("delete", {"rate": 1.0}, "received rate=1.0"),
        ("infill", {"rate": -0.1}, "received rate=-0.1"),
        ("infill", {"mean_length": 0.5}, "mean_length must be at least 1; .*mean_length=0.5"),
        ("mask", {"mask_id": -1}, "mask_id must lie in .* received -1"),
        ("infill", {"mask_id": None}, "mask_id must be integers .* dtype object"),
        ("permute", {"stop_ids": []}, "stop_ids must hold at least 1 ids; received 0"),
        ("rotate", {"special_ids": [-1]}, "special_ids must lie in .* received -1"),
        ("delete", {"token_ids": [0.5]}, "token_ids must be integers .* dtype float64"),
        ("rotate", {"seed": -1}, "received seed=-1"),
    ],
)
def test_bad_arguments_are_named(name, changes, message):
    with pytest.raises(ValueError, match=message):
        NOISES[name](**{"token_ids": [10, 11], "seed": 0} | changes)
