import numpy as np
import pytest

from keras_arch.objectives import answer_windows, best_answer

pytestmark = pytest.mark.once

CLS, SEP = 2, 3
SPECIAL = {"classification_id": CLS, "separator_id": SEP}
QUESTION = [11, 12]


@pytest.mark.parametrize("stride", [1, 3, 5])
@pytest.mark.parametrize("size", [1, 4, 5, 6, 13])
def test_every_span_is_found_in_the_windows_that_hold_it(size, stride):
    # Room for 5 tokens of the context in rows of 10.
    context = np.arange(20, 20 + size)
    options = {"length": 10, "stride": stride, **SPECIAL}
    seen = set()
    for first in range(size):
        for last in range(first, size):
            inputs, places, labels = answer_windows(QUESTION, context, (first, last), **options)
            for ids, of, (start, end) in zip(inputs["token_ids"], places, labels, strict=True):
                np.testing.assert_array_equal(ids[of >= 0], context[of[of >= 0]])
                assert ids[:4].tolist() == [CLS, *QUESTION, SEP]
                seen |= {*of[of >= 0].tolist()}
                if {first, last} <= {*of.tolist()}:
                    assert ids[start : end + 1].tolist() == context[first : last + 1].tolist()
                else:
                    assert (start, end) == (0, 0)
                    assert ids[0] == CLS
            held = any({first, last} <= {*of.tolist()} for of in places)
            # What two windows share is sure to be held.
            assert held or last - first + 1 > 5 - stride + 1
    assert seen == set(range(size))
    # A window is not made for nothing: the last one alone reaches the end.
    assert [size - 1 in of for of in places].index(True) == len(places) - 1


def test_no_answer_points_to_the_first_token():
    inputs, places, labels = answer_windows(QUESTION, [], length=8, stride=1, **SPECIAL)
    assert inputs["token_ids"].tolist() == [[CLS, *QUESTION, SEP, SEP, 0, 0, 0]]
    assert (places == -1).all()
    assert labels.tolist() == [[0, 0]]


def test_the_best_span_is_within_the_context():
    _, places, _ = answer_windows(QUESTION, range(20, 28), length=11, stride=3, **SPECIAL)
    logits = np.random.default_rng(0).normal(size=(len(places), 2, 11))
    logits[:, :, :4] += 10.0  # the question
    logits[:, :, 10:] += 10.0  # separator and pads
    best = max(
        (logits[w, 0, i] + logits[w, 1, j], w, i, j)
        for w in range(len(places))
        for i in range(11)
        for j in range(i, min(i + 3, 11))
        if places[w, i] >= 0 and places[w, j] >= 0
    )
    score, window, start, end = best
    found = best_answer(logits, places, longest=3)
    assert found[:2] == (places[window, start], places[window, end])
    assert found.score == pytest.approx(score)
    assert found.score_of_none == pytest.approx(logits[:, :, 0].sum(axis=1).min())


def test_a_context_of_nothing_has_no_answer():
    found = best_answer(np.zeros((1, 2, 4)), np.full((1, 4), -1))
    assert found == (None, None, float("-inf"), 0.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"length": 5}, "2 tokens, length=5"),
        ({"stride": 6}, "at most 5.*stride=6"),
        ({"stride": 0}, "stride=0"),
        ({"answer": (2, 1)}, r"answer=\[2, 1\]"),
        ({"answer": (0, 7)}, "answer must lie in .*received 7"),
        ({"answer": (0,)}, r"answer=\[0\]"),
        ({"question": [-1]}, "question must lie in"),
    ],
)
def test_bad_arguments_are_named(changes, message):
    arguments = {"question": QUESTION, "context": range(20, 27), "length": 10, "stride": 2}
    with pytest.raises(ValueError, match=message):
        answer_windows(**{**arguments, **SPECIAL, **changes})


def test_logits_of_other_shapes_are_named():
    with pytest.raises(ValueError, match=r"\(1, 2, 4\) and \(1, 5\)"):
        best_answer(np.zeros((1, 2, 4)), np.zeros((1, 5), int))
