import numpy as np
import pytest
from keras import ops

from keras_arch.backend import compile_function
from keras_arch.generation import (
    MinimumLength,
    MinP,
    NoRepeatNGram,
    RepetitionPenalty,
    Sample,
    Temperature,
    TopK,
    TopP,
)
from keras_arch.generation.candidates import Past
from tests.references import filters as reference

V = 9
STOPS = [2, 5]
#: Prompts and what was generated, of a small vocabulary: n-grams repeat. The last is one token.
ROWS = [[1, 2, 1, 2, 1], [3, 3, 3], [0, 4, 8, 4, 0, 4], [7]]
LENGTH = 11


def past(rows=ROWS, steps=1):
    """Rows with pads of id 3 before them, and slots after them that are not written yet."""
    token_ids, valid = np.full((len(rows), LENGTH), 3), np.zeros((len(rows), LENGTH), "bool")
    for i, row in enumerate(rows):
        part = slice(7 - len(row), 7)
        token_ids[i, part], valid[i, part] = row, True
    arrays = (token_ids.astype("int32"), valid)
    return Past(
        ops.convert_to_tensor(np.int32(steps)),
        ops.convert_to_tensor(np.array(STOPS, "int32")),
        *map(ops.convert_to_tensor, arrays),
    )


def some_logits(seed=0):
    return np.random.default_rng(seed).normal(scale=2.0, size=(len(ROWS), V)).astype("float32")


def expected(part, logits, tokens, steps):
    """What the reference makes of one row."""
    if isinstance(part, Temperature):
        return reference.temperature(logits, part.temperature)
    if isinstance(part, TopK):
        return reference.top_k(logits, part.k)
    if isinstance(part, TopP):
        return reference.top_p(logits, part.p)
    if isinstance(part, MinP):
        return reference.min_p(logits, part.p)
    if isinstance(part, RepetitionPenalty):
        return reference.repetition_penalty(logits, tokens, part.penalty)
    if isinstance(part, NoRepeatNGram):
        return reference.no_repeat_ngram(logits, tokens, part.n)
    return reference.minimum_length(logits, steps, STOPS, part.n)


def check(filters, logits, steps=1):
    known = past(steps=steps)

    def run(logits, *fields):
        return Sample(*filters).probabilities(logits, Past(*fields))

    found = ops.convert_to_numpy(compile_function(run, [])(logits, *known))
    for row, tokens, probabilities in zip(logits.tolist(), ROWS, found, strict=True):
        for part in filters:
            row = expected(part, row, tokens, steps)
        wanted = reference.probabilities(row)
        np.testing.assert_array_equal(probabilities > 0, wanted > 0, err_msg=str(filters))
        np.testing.assert_allclose(probabilities, wanted, rtol=2e-5, err_msg=str(filters))


@pytest.mark.parametrize(
    "part",
    [
        Temperature(0.7),
        TopK(3),
        TopK(99),
        TopP(0.0),
        TopP(0.6),
        TopP(1.0),
        MinP(0.0),
        MinP(0.15),
        MinP(1.0),
        RepetitionPenalty(1.5),
        RepetitionPenalty(0.5),
        NoRepeatNGram(1),
        NoRepeatNGram(2),
        NoRepeatNGram(3),
        NoRepeatNGram(20),
        MinimumLength(1),
        MinimumLength(2),
    ],
    ids=repr,
)
def test_each_filter_equals_its_reference(part):
    check([part], some_logits())


ALL = [
    RepetitionPenalty(1.4),
    NoRepeatNGram(2),
    MinimumLength(4),
    Temperature(1.3),
    TopK(6),
    TopP(0.9),
    MinP(0.05),
]


@pytest.mark.parametrize("seed", range(8))
def test_filters_apply_in_any_order_given(seed):
    order = np.random.default_rng(seed).permutation(len(ALL))
    check([ALL[i] for i in order], some_logits(seed))


def test_filters_of_what_is_past_may_leave_no_order():
    # The best of the two in order is lowered below the other: the next filter must see that.
    logits = some_logits()
    for i, row in enumerate(ROWS):
        logits[i, row[-1]] = 5.0
        logits[i, (row[-1] + 1) % V] = 4.9
    check([TopK(2), RepetitionPenalty(2.0), TopK(1)], logits)
    check([TopK(3), RepetitionPenalty(2.0), TopP(0.5)], logits)


def test_forbidding_all_that_is_left_forbids_nothing():
    logits = some_logits()
    for i, row in enumerate(ROWS):
        logits[i, row[0]] = 9.0
    check([TopK(1), NoRepeatNGram(1)], logits)


def test_every_token_seen_twice_still_leaves_a_distribution():
    known = past([list(range(7))])._replace(
        stop_ids=ops.convert_to_tensor(np.arange(V, dtype="int32"))
    )
    logits = ops.convert_to_tensor(some_logits()[:1, :7])
    found = Sample(NoRepeatNGram(1), MinimumLength(3)).probabilities(logits, known)
    np.testing.assert_allclose(ops.convert_to_numpy(found).sum(), 1.0, rtol=1e-6)
    assert (ops.convert_to_numpy(found) > 0).all()


def test_rows_may_have_steps_of_their_own():
    known = past()._replace(steps=ops.convert_to_tensor(np.array([0, 1, 2, 3], "int32")))
    found = Sample(MinimumLength(2)).probabilities(ops.convert_to_tensor(some_logits()), known)
    stops = ops.convert_to_numpy(found)[:, STOPS]
    assert (stops > 0).all(axis=1).tolist() == [False, False, True, True]
    assert (stops == 0).all(axis=1).tolist() == [True, True, False, False]


def test_penalties_of_half_precision_ties_are_by_id():
    # Many logits are equal, as bfloat16 makes them.
    logits = np.round(some_logits(3))
    check([TopK(4)], logits)
    check([RepetitionPenalty(1.5), TopK(4), MinP(0.3)], logits)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Temperature(0.0), r"temperature=0\.0.*Greedy\(\)"),
        (lambda: Temperature(-1), r"temperature=-1.*Greedy\(\)"),
        (lambda: Temperature(float("nan")), "temperature=nan"),
        (lambda: Temperature(float("inf")), "temperature=inf"),
        (lambda: Temperature(True), "temperature=True"),
        (lambda: Temperature("hot"), "temperature='hot'"),
        (lambda: Temperature(None), "temperature=None"),
        (lambda: TopK(0), "k=0"),
        (lambda: TopK(2.5), r"k=2\.5"),
        (lambda: TopK(True), "k=True"),
        (lambda: TopP(1.2), r"p=1\.2"),
        (lambda: TopP(float("nan")), "p=nan"),
        (lambda: TopP("0.5"), r"p='0\.5'"),
        (lambda: TopP(True), "p=True"),
        (lambda: MinP(-0.1), r"p=-0\.1"),
        (lambda: MinP(1.1), r"p=1\.1"),
        (lambda: MinP(None), "p=None"),
        (lambda: RepetitionPenalty(0.0), r"penalty=0\.0"),
        (lambda: RepetitionPenalty(-1.2), r"penalty=-1\.2"),
        (lambda: RepetitionPenalty(float("inf")), "penalty=inf"),
        (lambda: RepetitionPenalty(False), "penalty=False"),
        (lambda: NoRepeatNGram(0), "n=0"),
        (lambda: NoRepeatNGram(1.0), r"n=1\.0"),
        (lambda: NoRepeatNGram(True), "n=True"),
        (lambda: MinimumLength(0), "n=0"),
        (lambda: MinimumLength("3"), "n='3'"),
    ],
)
def test_bad_values_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
