import dataclasses

import keras
import numpy as np
import pytest

import keras_arch as ka
from keras_arch.generation import Greedy, Sample, Temperature, TopK
from tests.contracts.tiny import CONFIGS, CONTEXT, V, build, logits

ROWS = [[1, 2, 3, 4, 5], [7], [9, 8, 7]]
SAMPLE = Sample(Temperature(0.9), TopK(12))


@pytest.fixture(scope="module")
def model():
    return build(dataclasses.replace(CONFIGS["gpt2"], layers=1))


@pytest.mark.parametrize("sampler", [Greedy(), SAMPLE], ids=["greedy", "sample"])
def test_a_batch_equals_its_rows_alone(model, sampler):
    together = ka.generate(model, ROWS, 10, sampler, seed=3)
    # Row i draws by (seed, i), so a row alone must stand at the same place.
    for i, row in enumerate(ROWS):
        alone = ka.generate(model, [row] * (i + 1), 10, sampler, seed=3)
        np.testing.assert_array_equal(alone.token_ids[i], together.token_ids[i])


@pytest.mark.parametrize("pads", [0, 1, 7])
@pytest.mark.parametrize("side", ["left", "right"])
def test_pads_on_either_side_change_nothing(model, pads, side):
    width = 5 + pads
    token_ids, valid = np.full((3, width), 30), np.zeros((3, width), "bool")
    for i, row in enumerate(ROWS):
        part = slice(width - len(row), None) if side == "left" else slice(len(row))
        token_ids[i, part], valid[i, part] = row, True
    padded = ka.generate(model, token_ids, 10, valid=valid)
    np.testing.assert_array_equal(padded.token_ids, ka.generate(model, ROWS, 10).token_ids)


def test_seeds_reproduce(model):
    def run(seed):
        return ka.generate(model, ROWS, 12, SAMPLE, seed=seed).token_ids

    np.testing.assert_array_equal(run(5), run(5))
    np.testing.assert_array_equal(run(5), run(np.int64(5)))
    assert not np.array_equal(run(5), run(6))
    assert not np.array_equal(run(5), run(5 + 2**40))
    assert not np.array_equal(run(None), run(None))


def test_the_same_seed_after_a_reload(model, tmp_path):
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    expected = ka.generate(model, ROWS, 12, SAMPLE, seed=5)
    np.testing.assert_array_equal(
        ka.generate(again, ROWS, 12, SAMPLE, seed=5).token_ids, expected.token_ids
    )


def test_log_probabilities_are_the_models_own(model):
    generated = ka.generate(model, [ROWS[0]], 8, SAMPLE, seed=1, return_logprobs=True)
    row = np.concatenate([ROWS[0], generated.token_ids[0]])
    z = logits(model, row[None])[0, 4:-1].astype("float64")
    expected = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    expected = expected[np.arange(8), generated.token_ids[0]]
    np.testing.assert_allclose(generated.log_probabilities[0], expected, atol=1e-5)


def test_log_probabilities_come_when_asked_for(model):
    assert ka.generate(model, ROWS, 12).log_probabilities is None
    assert ka.generate(model, [], 4).log_probabilities is None
    assert ka.generate(model, [], 4, return_logprobs=True).log_probabilities.shape == (0, 4)


def test_rows_end_with_any_of_the_stop_ids(model):
    free = ka.generate(model, ROWS, 12)
    stops = (int(free.token_ids[0, 3]), int(free.token_ids[1, 5]))
    stopped = ka.generate(model, ROWS, 12, stop_ids=stops)
    for row, kept, unstopped in zip(stopped.token_ids, stopped.valid, free.token_ids, strict=True):
        hits = np.flatnonzero(np.isin(unstopped, stops))
        length = hits[0] + 1 if hits.size else 12
        np.testing.assert_array_equal(row[:length], unstopped[:length])
        np.testing.assert_array_equal(kept, np.arange(12) < length)
        assert not row[length:].any()


class Letters:
    """A tokenizer of the letters a to z, ids 1 to 26."""

    start_id = None
    vocabulary_size = V

    def encode(self, text):
        return [ord(letter) - 96 for letter in text]

    def decode(self, ids):
        return "".join(chr(i + 96) for i in ids)


def test_strings_go_in_and_come_out(model):
    ids = ka.generate(model, [[1, 2], [3]], 6)
    stop = int(ids.token_ids[0, 4])
    generated = ka.generate(model, ["ab", "c"], 6, tokenizer=Letters(), stop_ids=[stop])
    expected = [row[: list(row).index(stop)] if stop in row else row for row in ids.token_ids]
    assert generated.texts == [Letters().decode(row) for row in expected]
    assert ka.generate(model, "ab", 6, tokenizer=Letters()).texts == [
        Letters().decode(ids.token_ids[0])
    ]
    assert ids.texts is None


def test_a_tokenizer_of_another_vocabulary_is_refused(model, traces):
    tokenizer = Letters()
    tokenizer.vocabulary_size = V + 1
    with pytest.raises(ValueError, match=f"tokenizer of {V + 1} tokens and a model of {V}"):
        ka.generate(model, "a", 4, tokenizer=tokenizer)
    assert not traces


def test_empty_prompts(model):
    assert ka.generate(model, [], 4).token_ids.shape == (0, 4)
    assert ka.generate(model, [], 4, tokenizer=Letters()).texts == []
    with pytest.raises(ValueError, match=r"prompts\[1\] is empty"):
        ka.generate(model, [[1], []], 4)
    with pytest.raises(ValueError, match=r"prompts\[0\] is empty.*''"):
        ka.generate(model, ["", "a"], 4, tokenizer=Letters())
    started = ka.generate(model, [[1], []], 4, bos_id=6)
    np.testing.assert_array_equal(started.token_ids, ka.generate(model, [[1], [6]], 4).token_ids)


@pytest.mark.parametrize(
    ("prompts", "options", "message"),
    [
        ([[1] * 20], {"max_new_tokens": 5}, rf"20 tokens.*max_new_tokens=5.*={CONTEXT}"),
        ([[1], [2, V]], {}, rf"prompts\[1\] has token id {V}, outside"),
        ([[-1]], {}, r"prompts\[0\] has token id -1"),
        ([[1.5]], {}, r"prompts\[0\] must be a list of token ids"),
        ([1, 2], {}, r"prompts\[0\] must be a list of token ids"),
        (None, {}, "prompts must be a string or a list; received prompts=None"),
        (["a"], {}, r"tokenizer=.*'a'"),
        ([[1]], {"max_new_tokens": 0}, "max_new_tokens=0"),
        ([[1]], {"seed": -1}, "seed=-1"),
        ([[1]], {"sampler": "greedy"}, "sampler='greedy'"),
        ([[1]], {"sampler": Greedy}, "sampler=<class"),
        ([[1]], {"sampler": Temperature(0.8)}, r"Sample\(\.\.\.\).*Temperature"),
        ([[1]], {"stop_ids": 5}, "stop_ids=5"),
        ([[1]], {"stop_ids": [1.7]}, r"stop_ids.*1\.7"),
        ([[1]], {"stop_ids": [True]}, r"stop_ids.*True"),
        ([[1]], {"stop_ids": iter([1])}, r"stop_ids=<list_iterator"),
        ([[1]], {"stop_ids": [V]}, f"stop_ids.*{V} tokens; received {V}"),
        ([[1]], {"bos_id": V}, f"bos_id.*received {V}"),
        ([[1]], {"seed": 0.5}, r"seed=0\.5"),
        (np.ones((2, 3), int), {"valid": np.ones((2, 2), bool)}, r"\(2, 3\).*\(2, 2\)"),
    ],
)
def test_bad_input_is_named_before_any_compute(model, traces, prompts, options, message):
    with pytest.raises(ValueError, match=message):
        ka.generate(model, prompts, **{"max_new_tokens": 4, **options})
    assert not traces


def test_a_count_may_be_one_of_numpy(model):
    expected = ka.generate(model, ROWS, 4).token_ids
    np.testing.assert_array_equal(ka.generate(model, ROWS, np.int64(4)).token_ids, expected)


def test_a_model_without_a_limit_takes_any_length():
    inputs = {
        "token_ids": keras.Input((None,), dtype="int32", name="token_ids"),
        "valid": keras.Input((None,), dtype="bool", name="valid"),
    }
    embedding = ka.layers.TokenEmbedding(V, 16, name="tokens")
    positions = ka.layers.TokenPositions(name="positions")(inputs["valid"])
    block = ka.layers.PreNorm(ka.layers.SelfAttention(4, 4), ka.layers.RMSNorm())
    bias = ka.layers.AlibiBias(4)(positions)
    x = block(embedding(inputs["token_ids"]), positions, inputs["valid"], bias=bias)
    model = keras.Model(inputs, embedding(x, reverse=True))
    assert ka.generate(model, [[1] * (2 * CONTEXT)], 3).valid.all()


def test_a_prompt_may_fill_the_context(model):
    generated = ka.generate(model, [[1] * (CONTEXT - 3)], 3)
    assert generated.valid.all()
