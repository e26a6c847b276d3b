import gc
import sys
import weakref

import keras
import numpy as np
import pytest

import keras_arch as ka
from keras_arch.generation.score import score, windows
from tests.contracts.tiny import CONFIGS, CONTEXT, DECODERS, V, build, context_of

SCORE = sys.modules["keras_arch.generation.score"]
ROWS = [[1, 2, 3, 4, 5], [7, 8], [9, 8, 7]]


@pytest.fixture(scope="module")
def model():
    return build(CONFIGS["gpt2"])


@pytest.fixture
def traces(monkeypatch):
    calls = []
    compute = SCORE.next_log_probabilities

    def counting(*arguments):
        calls.append(arguments[1].shape)
        return compute(*arguments)

    monkeypatch.setattr(SCORE, "next_log_probabilities", counting)
    return calls


def one_by_one(model, contexts, targets, source=None):
    """Returns the log-probability of each target after its context, each read on its own.

    Args:
        source: Of the text, what the model's other inputs get; dict of arrays of one row.
    """
    token_ids, valid = np.zeros((64, CONTEXT), "int32"), np.zeros((64, CONTEXT), "bool")
    for i, context in enumerate(contexts):
        token_ids[i, : len(context)], valid[i, : len(context)] = context, True
    inputs = {"token_ids": token_ids, "valid": valid}
    inputs |= {name: np.repeat(x, 64, axis=0) for name, x in (source or {}).items()}
    scores = model.predict_on_batch(inputs).astype("float64")
    z = np.stack([scores[i, len(context) - 1] for i, context in enumerate(contexts)])
    z -= z.max(axis=-1, keepdims=True)
    return z[np.arange(len(z)), targets] - np.log(np.exp(z).sum(axis=-1))


def naive(model, row, stride=1, source=None):
    """Scores a row's tokens but the first, each given what its window reads before it."""
    contexts = []
    for t in range(1, len(row)):
        beyond = max(0, t + 1 - CONTEXT)
        # A window ends at the context's end or a multiple of the stride after it.
        end = min(len(row), CONTEXT + -(-beyond // stride) * stride)
        contexts.append(row[max(0, end - CONTEXT) : t])
    return one_by_one(model, contexts, row[1:], source)


@pytest.mark.parametrize("label", DECODERS)
def test_tokens_are_scored_given_those_before(label):
    model = build(CONFIGS[label])
    context = context_of(model, len(ROWS))
    scored = score(model, ROWS, context=context)
    np.testing.assert_array_equal(scored.valid, [[0, 1, 1, 1, 1], [0, 1, 0, 0, 0], [0, 1, 1, 0, 0]])
    for i, row in enumerate(ROWS):
        expected = np.zeros(5)
        source = {name: x[i : i + 1] for name, x in context.items()}
        expected[1 : len(row)] = naive(model, row, source=source)
        np.testing.assert_allclose(scored.log_probabilities[i], expected, atol=1e-5)


def test_a_begin_token_lets_the_first_be_scored(model):
    scored = score(model, [*ROWS, []], bos_id=6)
    np.testing.assert_array_equal(scored.token_counts, [5, 2, 3, 0])
    for i, row in enumerate(ROWS):
        expected = naive(model, [6, *row])
        np.testing.assert_allclose(scored.log_probabilities[i, : len(row)], expected, atol=1e-5)


@pytest.mark.parametrize("label", ["gpt2", "llama-window"])
@pytest.mark.parametrize("stride", [1, 5, CONTEXT - 1, None])
def test_longer_texts_are_read_in_windows(label, stride):
    model = build(CONFIGS[label])
    random = np.random.default_rng(4)
    rows = [random.integers(0, V, size).tolist() for size in (2 * CONTEXT + 7, 9, CONTEXT + 1)]
    scored = score(model, rows, stride=stride, batch_size=4)
    for i, row in enumerate(rows):
        expected = naive(model, row, stride or CONTEXT // 2)
        got = scored.log_probabilities[i, : len(row)]
        assert scored.valid[i, 1 : len(row)].all()
        np.testing.assert_allclose(got[1:], expected, rtol=0, atol=1e-5)


def test_exact_values_have_the_whole_context_before_them(model):
    row = np.random.default_rng(5).integers(0, V, 2 * CONTEXT).tolist()
    scored = score(model, [row], stride=1)
    ends = [CONTEXT - 1, CONTEXT, 2 * CONTEXT - 1]
    contexts = [row[t - (CONTEXT - 1) : t] for t in ends]
    expected = one_by_one(model, contexts, [row[t] for t in ends])
    np.testing.assert_allclose(scored.log_probabilities[0, ends], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("length", [0, 1, 2, 7, 8, 9, 23])
@pytest.mark.parametrize("stride", [1, 3, 7])
def test_windows_score_each_token_once_with_enough_before_it(length, stride):
    found = []
    for begin, first, end in windows(length, 8, stride):
        assert 0 <= begin < first < end <= length
        assert end - begin <= 8
        assert all(t - begin >= min(t, 8 - stride) for t in range(first, end))
        found += range(first, end)
    assert found == list(range(1, length))


@pytest.mark.parametrize("pads", [0, 1, 7])
@pytest.mark.parametrize("side", ["left", "right"])
def test_pads_on_either_side_change_nothing(model, pads, side):
    width = 5 + pads
    token_ids, valid = np.full((3, width), 30), np.zeros((3, width), "bool")
    for i, row in enumerate(ROWS):
        part = slice(width - len(row), None) if side == "left" else slice(len(row))
        token_ids[i, part], valid[i, part] = row, True
    padded, plain = score(model, token_ids, valid=valid), score(model, ROWS)
    for a, b in zip(padded, plain, strict=True):
        np.testing.assert_array_equal(a, b)


def bigrams(probabilities):
    """Builds a model whose next token has these probabilities by the token before, `[V, V]`."""
    token_ids = keras.Input((None,), dtype="int32", name="token_ids")
    valid = keras.Input((None,), dtype="bool", name="valid")
    table = ka.layers.TokenEmbedding(*probabilities.shape)
    model = keras.Model([token_ids, valid], table(token_ids))
    table.set_weights([np.log(probabilities)])
    return model


def test_perplexity_is_over_all_tokens():
    """Three tokens of probability 1/2, one of 1/8: 2 ** 1.5, not the mean of both perplexities.

    See https://github.com/keras-team/keras-hub/pull/2958.
    """
    rows = [[1 / 2, 1 / 2, 0, 0], [1 / 8, 1 / 8, 1 / 8, 5 / 8]]
    probabilities = np.array(rows + [[1 / 4] * 4] * 2)
    scored = score(bigrams(probabilities + 1e-30), [[0, 1], [0, 0, 1], [1, 2]])
    np.testing.assert_allclose(scored.perplexities, [2, 2, 8], rtol=1e-6)
    assert scored.perplexity == pytest.approx(2**1.5, rel=1e-6)


def test_perplexities_follow_from_the_tokens(model):
    scored = score(model, [*ROWS, [3], []])
    log_probabilities = scored.log_probabilities.astype("float64")
    totals, counts = log_probabilities.sum(axis=1), np.array([4, 1, 2, 0, 0])
    np.testing.assert_array_equal(scored.token_counts, counts)
    np.testing.assert_allclose(scored.totals, totals, rtol=1e-12)
    expected = [np.exp(-totals[i] / counts[i]) for i in range(3)]
    np.testing.assert_allclose(scored.perplexities, [*expected, 1, 1], rtol=1e-12)
    assert scored.perplexity == pytest.approx(np.exp(-totals.sum() / 7), rel=1e-12)
    assert scored.perplexity != pytest.approx(np.mean(expected), rel=1e-3)


def test_any_batch_size_gives_the_same(model):
    rows = [[i % V, 3, 5, i % 7] for i in range(9)]
    expected = score(model, rows, batch_size=9)
    for size in (1, 2, 4):
        got = score(model, rows, batch_size=size).log_probabilities
        np.testing.assert_allclose(got, expected.log_probabilities, rtol=0, atol=1e-5)


def test_no_texts(model):
    scored = score(model, [])
    assert scored.log_probabilities.shape == (0, 0)
    assert scored.perplexity == 1.0
    assert score(model, [[], []]).token_counts.tolist() == [0, 0]


class Letters:
    """A tokenizer of the letters a to z, ids 1 to 26."""

    start_id = 27
    vocabulary_size = V

    def encode(self, text):
        return [ord(letter) - 96 for letter in text]


def test_strings_start_from_the_tokenizers_own_token(model):
    by_ids = score(model, [[1, 2, 3], [], [4]], bos_id=27)
    by_text = score(model, ["abc", "", "d"], tokenizer=Letters())
    np.testing.assert_array_equal(by_text.log_probabilities, by_ids.log_probabilities)
    single = score(model, "abc", tokenizer=Letters())
    np.testing.assert_allclose(single.totals[0], by_ids.totals[0], atol=1e-5)


@pytest.mark.skipif(keras.backend.backend() == "torch", reason="PyTorch runs without a trace")
def test_lengths_of_one_bucket_share_a_program(traces):
    model = build(CONFIGS["gpt2"])
    for length in range(6, 11):
        score(model, [[1] * length])
    assert len(traces) == 1
    score(model, [[1] * 3, [2] * 7, [3] * 4])
    score(model, [[1] * 5] * 4)
    assert traces == [(1, 16), (4, 16)]


def test_programs_follow_the_weights(traces):
    model, other = build(CONFIGS["gpt2"], seed=1), build(CONFIGS["gpt2"], seed=2)
    score(model, ROWS)
    seen = len(traces)
    model.set_weights(other.get_weights())
    changed = score(model, ROWS)
    if keras.backend.backend() != "torch":
        assert len(traces) == seen
    np.testing.assert_array_equal(changed.totals, score(other, ROWS).totals)


def test_programs_go_with_their_model():
    model = build(CONFIGS["gpt2"])
    score(model, ROWS)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_the_models_own_choices_have_the_log_probabilities_it_generates_with(model):
    generated = ka.generate(model, ROWS, 6, return_logprobs=True)
    rows = [row + ids.tolist() for row, ids in zip(ROWS, generated.token_ids, strict=True)]
    scored = score(model, rows)
    for i, row in enumerate(ROWS):
        got = scored.log_probabilities[i, len(row) : len(row) + 6]
        np.testing.assert_allclose(got, generated.log_probabilities[i], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        ([[1], [2, V]], {}, rf"texts\[1\] has token id {V}, outside"),
        ([[-1]], {}, r"texts\[0\] has token id -1"),
        ([[1.5]], {}, r"texts\[0\] must be a list of token ids"),
        (5, {}, "texts must be a string or a list; received texts=5"),
        (["a"], {}, r"texts.*tokenizer=.*'a'"),
        ([[1]], {"stride": 0}, "stride=0"),
        ([[1]], {"stride": 1.5}, r"stride=1\.5"),
        ([[1]], {"stride": CONTEXT}, f"stride={CONTEXT}, context_length={CONTEXT}"),
        ([[1]], {"batch_size": 0}, "batch_size=0"),
        ([[1]], {"bos_id": V}, f"bos_id.*received {V}"),
        (np.ones((2, 3), int), {"valid": np.ones((2, 2), bool)}, r"\(2, 3\).*\(2, 2\)"),
    ],
)
def test_bad_input_is_named_before_any_compute(model, traces, texts, options, message):
    with pytest.raises(ValueError, match=message):
        score(model, texts, **options)
    assert not traces
