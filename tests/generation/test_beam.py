import dataclasses

import keras
import numpy as np
import pytest
from keras import ops

import keras_arch as ka
from keras_arch.backend import compile_loop, run_loop
from keras_arch.generation import BeamSearch, Stepper, generate_beams
from keras_arch.generation.beam_decode import BeamDecode
from keras_arch.generation.prompts import pad_left
from tests.contracts.tiny import CONTEXT, V
from tests.generation.beams import ROWS, check, following, small
from tests.references.beam_search import beam_search, best_of_all


def frequent(model, rows, new):
    """Returns two ids that greedy search meets late, to be stop ids."""
    free = ka.generate(model, rows, new).token_ids
    return [int(free[0, new // 2]), int(free[1, new - 1])]


@pytest.mark.parametrize(
    ("label", "search"),
    [
        ("gpt2", BeamSearch(3, 0.6, n_best=3)),
        ("llama-window", BeamSearch(4, 1.0, early_stopping="never", n_best=4)),
        ("lstm_lm", BeamSearch(3, -1.0, early_stopping=True, n_best=2)),
        ("gpt2", BeamSearch(4, 0.6, n_best=4, groups=2, diversity=0.7)),
    ],
    ids=["gpt2", "llama", "lstm", "groups"],
)
def test_hypotheses_equal_the_reference(label, search):
    model = small(label)
    stop_ids = frequent(model, ROWS, 8)
    found = generate_beams(model, ROWS, 8, search, stop_ids)
    run, options = following(model), dataclasses.asdict(search)
    options |= {"alpha": options.pop("length_penalty")}
    del options["n_best"], options["coverage_penalty"]
    for i, row in enumerate(ROWS):
        check(found, i, beam_search(run, row, 8, stop_ids=stop_ids, **options))
        kept = [tuple(x[k]) for x, k in zip(found.token_ids[i], found.valid[i], strict=True)]
        # Groups may come to the same one.
        assert search.groups > 1 or len(set(kept)) == len(kept)
    assert not found.valid.all()


def test_totals_are_those_of_teacher_forcing():
    model = small("gpt2")
    found = generate_beams(model, ROWS, 6, BeamSearch(3, 0.6, n_best=3))
    run = following(model)
    for i, row in enumerate(ROWS):
        for tokens, parts, total in zip(
            found.token_ids[i], found.log_probabilities[i], found.totals[i], strict=True
        ):
            forced = [run([[*row, *tokens[:t]]])[0, token] for t, token in enumerate(tokens)]
            np.testing.assert_allclose(parts, forced, atol=1e-5, rtol=0)
            np.testing.assert_allclose(total, sum(forced), atol=2e-5, rtol=0)
    # The best does not depend on how many are returned, nor a row on those beside it.
    for i, row in enumerate(ROWS):
        alone = generate_beams(model, [row], 6, BeamSearch(3, 0.6))
        np.testing.assert_array_equal(alone.token_ids[0, 0], found.token_ids[i, 0])
        np.testing.assert_allclose(alone.totals[0, 0], found.totals[i, 0], atol=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_one_beam_is_greedy(alpha):
    model = small("llama")
    stop_ids = frequent(model, ROWS, 8)
    expected = ka.generate(model, ROWS, 8, stop_ids=stop_ids, return_logprobs=True)
    found = generate_beams(model, ROWS, 8, BeamSearch(1, alpha), stop_ids)
    np.testing.assert_array_equal(found.token_ids[:, 0], expected.token_ids)
    np.testing.assert_array_equal(found.valid[:, 0], expected.valid)
    np.testing.assert_allclose(found.totals[:, 0], expected.log_probabilities.sum(-1), atol=1e-5)


def bigrams(probabilities):
    """A model that reads the distribution of the next token out of a table `[V, V]`."""
    inputs = {
        "token_ids": keras.Input((None,), dtype="int32", name="token_ids"),
        "valid": keras.Input((None,), dtype="bool", name="valid"),
    }
    size = len(probabilities)
    model = keras.Model(inputs, ka.layers.TokenEmbedding(size, size)(inputs["token_ids"]))
    with np.errstate(divide="ignore"):
        model.weights[0].assign(np.log(probabilities))
    return model


def test_a_finished_hypothesis_is_frozen():
    # Ids: a, b, end. After a: end .6, b .4; after b: b .9, end .05, a .05 (tensorflow#21920).
    model = bigrams(np.array([[0, 0.4, 0.6], [0.05, 0.9, 0.05], [1 / 3] * 3]))
    found = generate_beams(model, [[0]], 5, BeamSearch(2, n_best=2), stop_ids=[2])
    assert found.token_ids[0].tolist() == [[2, 0, 0, 0, 0], [1, 1, 1, 1, 1]]
    assert found.valid[0].sum(axis=-1).tolist() == [1, 5]
    expected = [np.log(0.6), np.log(0.4 * 0.9**4)]
    np.testing.assert_allclose(found.totals[0], expected, atol=1e-6)


def test_places_without_a_hypothesis_are_empty():
    model = bigrams(np.array([[0, 1.0, 0], [0, 0, 1.0], [1 / 3] * 3]))
    found = generate_beams(model, [[0]], 4, BeamSearch(3, n_best=3), stop_ids=[2])
    assert found.token_ids[0].tolist() == [[1, 2, 0, 0]] + [[0] * 4] * 2
    assert found.valid[0].sum(axis=-1).tolist() == [2, 0, 0]
    assert found.totals[0].tolist() == found.scores[0].tolist() == [0.0, -np.inf, -np.inf]
    assert not found.log_probabilities.any()


@pytest.mark.parametrize("alpha", [-1.0, 0.0, 0.6, 1.0])
def test_wide_enough_it_finds_the_best_of_all(alpha):
    model = small("lstm_lm", vocabulary_size=4)
    rows, stop_ids, search = [[1], [2, 1, 3]], [0], BeamSearch(4**4, alpha, early_stopping="never")
    stepper = Stepper(model)
    program = compile_loop(BeamDecode(stepper, 4, search), stepper.variables)
    outputs = program(*pad_left(rows, 3), np.int32(4), np.array(stop_ids, "int32"), {})
    token_ids, valid, _, totals, scores = map(ops.convert_to_numpy, outputs)
    for i, row in enumerate(rows):
        tokens, total, score = best_of_all(following(model), row, 4, stop_ids, alpha)
        assert token_ids[i, 0, valid[i, 0]].tolist() == tokens
        np.testing.assert_allclose([totals[i, 0], scores[i, 0]], [total, score], atol=1e-5)


def test_early_stopping_trades_scores_for_time():
    model = bigrams(np.random.default_rng(32).dirichlet([0.6] * 6, size=6))
    rows, best = [[1], [2], [3], [4], [5]], []
    for early_stopping in (True, False, "never"):
        search = BeamSearch(2, 2.0, early_stopping=early_stopping, n_best=2)
        found = generate_beams(model, rows, 12, search, stop_ids=[0])
        for i, row in enumerate(rows):
            expected = beam_search(following(model), row, 12, 2, [0], 2.0, early_stopping)
            check(found, i, expected)
        best.append(found.scores[:, 0].sum())
    assert best[0] < best[1] < best[2]


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="SavedModels are written from TensorFlow"
)
def test_a_saved_search_takes_any_batch_and_length(tmp_path):
    import tensorflow as tf

    model, search = small("gpt2"), BeamSearch(4, 0.6, n_best=2, groups=2, diversity=0.5)
    module, stepper = tf.Module(), Stepper(model)
    module.weights = [variable.value for variable in stepper.variables]

    def run(token_ids, valid, limit):
        outputs = run_loop(
            BeamDecode(stepper, 6, search), token_ids, valid, limit, tf.constant([4, 30]), {}
        )
        return dict(zip("ivpts", outputs, strict=True))

    specs = [((None, None), "int32"), ((None, None), "bool"), ((), "int32")]
    specs = [tf.TensorSpec(shape, dtype) for shape, dtype in specs]
    module.run = tf.function(run, input_signature=specs, autograph=False)
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    for rows in (ROWS, [[3]]):
        found = loaded.run(*map(tf.constant, pad_left(rows, 6)), 6)
        expected = generate_beams(model, rows, 6, search, stop_ids=[4, 30])
        np.testing.assert_array_equal(found["i"], expected.token_ids)
        np.testing.assert_array_equal(found["v"], expected.valid)
        np.testing.assert_allclose(found["s"], expected.scores, atol=1e-5)


class Letters:
    """A tokenizer: 0 is the end, then a, b, ..."""

    vocabulary_size, start_id = V, 0

    def encode(self, text):
        return [ord(letter) - 96 for letter in text]

    def decode(self, token_ids):
        return "".join(chr(96 + token) for token in token_ids)


def test_texts_and_no_prompts():
    model, search = small("gpt2"), BeamSearch(2, n_best=2)
    found = generate_beams(model, ["ab", ""], 4, search, tokenizer=Letters())
    ids = generate_beams(model, [[1, 2], [0]], 4, search)
    np.testing.assert_array_equal(found.token_ids, ids.token_ids)
    expected = [[Letters().decode(tokens) for tokens in row] for row in ids.token_ids]
    assert found.texts == expected
    none = generate_beams(model, [], 4, search, tokenizer=Letters())
    assert none.token_ids.shape == none.log_probabilities.shape == (0, 2, 4)
    assert (none.totals.shape, none.scores.shape, none.texts) == ((0, 2), (0, 2), [])


@pytest.mark.parametrize(
    ("prompts", "options", "message"),
    [
        ([[1]], {"search": 4}, "BeamSearch.*received search=4"),
        ([[1]], {"search": BeamSearch(V + 1)}, f"width={V + 1}, a vocabulary of {V} tokens"),
        ([[1]], {"max_new_tokens": 0}, "max_new_tokens=0"),
        ([[V]], {}, rf"prompts\[0\] has token id {V}"),
        ([[1] * 20], {"max_new_tokens": 5}, rf"20 tokens.*={CONTEXT}"),
        ([[1]], {"stop_ids": [V]}, f"stop_ids.*received {V}"),
        ([[1]], {"context": {"source_ids": [[1]]}}, "source_ids"),
    ],
)
def test_bad_input_is_named(prompts, options, message):
    model = small("gpt2")
    with pytest.raises(ValueError, match=message):
        generate_beams(model, prompts, **{"max_new_tokens": 4, "search": BeamSearch(2), **options})
