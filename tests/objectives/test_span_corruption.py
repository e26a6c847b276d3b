import numpy as np
import pytest

from keras_arch.objectives import (
    corrupt_spans,
    descending_sentinels,
    fill_spans,
    random_spans,
    span_corruption,
    span_counts,
)
from tests.references import denoising as reference

pytestmark = pytest.mark.once

X, Y, Z = "<X>", "<Y>", "<Z>"
TEXT = ["Thank", "you", "for", "inviting", "me", "to", "your", "party", "last", "week", "."]


def test_the_papers_example():
    words = list(dict.fromkeys([*TEXT, X, Y, Z]))
    noise = np.array([word in ("for", "inviting", "last") for word in TEXT])
    inputs, targets = corrupt_spans(
        [words.index(word) for word in TEXT], noise, [words.index(s) for s in (X, Y, Z)]
    )
    assert " ".join(words[i] for i in inputs) == "Thank you <X> me to your party <Y> week ."
    assert " ".join(words[i] for i in targets) == "<X> for inviting <Y> last <Z>"
    assert inputs.dtype == targets.dtype == "int32"


@pytest.mark.parametrize(
    ("noise", "inputs", "targets"),
    [
        ([0, 0, 0], [5, 6, 7], [99]),
        ([1, 1, 1], [99], [99, 5, 6, 7, 98]),
        ([1, 0, 1], [99, 6, 98], [99, 5, 98, 7, 97]),
    ],
)
def test_spans_at_the_ends(noise, inputs, targets):
    pair = corrupt_spans([5, 6, 7], np.array(noise, bool), [99, 98, 97])
    assert [part.tolist() for part in pair] == [inputs, targets]


def test_equals_the_reference_and_loses_nothing():
    random = np.random.default_rng(0)
    sentinels = descending_sentinels(1100)
    for _ in range(1000):
        ids = random.integers(1000, size=random.integers(2, 200))
        seed = int(random.integers(1 << 30))
        inputs, targets = span_corruption(ids, seed, sentinels, vocabulary_size=1100)
        tokens, spans = span_counts(len(ids))
        assert (len(inputs), len(targets)) == (len(ids) - tokens + spans, tokens + spans + 1)
        expected = reference.corrupt(ids, random_spans(len(ids), seed), sentinels)
        assert (inputs.tolist(), targets.tolist()) == expected
        assert reference.rebuild(inputs, targets, sentinels) == ids.tolist()
        assert fill_spans(inputs, targets, sentinels).tolist() == ids.tolist()


@pytest.mark.parametrize(
    ("written", "filled"),
    [
        ([], [99, 6, 98]),
        ([4, 4], [99, 6, 98]),
        ([98, 7], [99, 6, 7]),
        ([4, 99, 98, 7, 8, 99, 5, 97], [6, 7, 8]),
    ],
    ids=["nothing", "no sentinel", "one missing", "one twice, an empty span"],
)
def test_what_a_model_wrote_is_filled_in(written, filled):
    assert fill_spans([99, 6, 98], written, [99, 98, 97]).tolist() == filled


def test_sentinels_descend_from_the_top():
    # T5's <extra_id_0> is 32,099 and its <extra_id_99> 32,000.
    np.testing.assert_array_equal(descending_sentinels(32_100), np.arange(32_099, 31_999, -1))
    with pytest.raises(ValueError, match="at most vocabulary_size=9; received count=10"):
        descending_sentinels(9, 10)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"noise": [True, False]}, "noise must be bool of shape \\(4,\\), .* shape \\(2,\\)"),
        ({"noise": [0, 1, 0, 1]}, "dtype int64"),
        ({"sentinel_ids": [9, 8]}, "sentinel_ids must hold at least 3 ids, .* received 2"),
        ({"sentinel_ids": [9, 8, 9]}, "sentinel_ids must differ; received 9 twice"),
        ({"sentinel_ids": [9, 8, 3]}, "not hold a sentinel; received 3 at position 2"),
        ({"sentinel_ids": [10, 9, 8]}, "sentinel_ids must lie in \\[0, 10\\); received 10"),
        ({"token_ids": [1, 2, 3, 10]}, "token_ids must lie in \\[0, 10\\); received 10"),
    ],
)
def test_bad_arguments_are_named(changes, message):
    arguments = {
        "token_ids": [1, 2, 3, 4],
        "noise": [True, False, True, False],
        "sentinel_ids": [9, 8, 7],
        "vocabulary_size": 10,
    }
    with pytest.raises(ValueError, match=message):
        corrupt_spans(**arguments | changes)


def test_a_row_of_one_token_is_refused():
    with pytest.raises(ValueError, match="token_ids must hold at least 2 ids; received 1"):
        span_corruption([5], 0, [9, 8])
