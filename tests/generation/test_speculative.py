import dataclasses

import keras
import numpy as np
import pytest

import keras_arch as ka
from keras_arch.generation import Greedy, RepetitionPenalty, Sample, Temperature, TopK
from keras_arch.generation.speculative import generate_speculative
from tests.contracts.tiny import CONFIGS, CONTEXT, V, build
from tests.generation.test_states import recurrent_model

ROWS = [[1, 2, 3, 4, 5], [7], [9, 8, 7]]


def changed(model, scale, seed=3):
    """A model near another: its draft."""
    draft = keras.models.clone_model(model)
    random = np.random.default_rng(seed)
    for new, old in zip(draft.weights, model.get_weights(), strict=True):
        new.assign(old + random.normal(scale=scale, size=old.shape))
    return draft


def small(label):
    return build(dataclasses.replace(CONFIGS[label], layers=1))


@pytest.fixture(scope="module")
def model():
    return small("gpt2")


@pytest.fixture(scope="module")
def draft(model):
    return changed(model, 0.1)


@pytest.mark.parametrize("label", ["gpt2", "llama-window"])
def test_greedy_tokens_are_the_models_own(label):
    model = small(label)
    expected = ka.generate(model, ROWS, 16, return_logprobs=True)
    found = generate_speculative(model, changed(model, 0.1), ROWS, 16, return_logprobs=True)
    np.testing.assert_array_equal(found.token_ids, expected.token_ids)
    np.testing.assert_array_equal(found.valid, expected.valid)
    np.testing.assert_allclose(
        found.log_probabilities, expected.log_probabilities, atol=1e-5, rtol=0
    )
    # Neither all nor none was accepted, so that both paths ran.
    assert 0 < found.accepted < 4


def test_the_model_as_its_own_draft_fills_the_context(model):
    prompt = [list(range(CONTEXT - 15))]
    found = generate_speculative(model, model, prompt, 15)
    np.testing.assert_array_equal(found.token_ids, ka.generate(model, prompt, 15).token_ids)
    # 15 tokens in 3 rounds of 4 drafts and one more.
    assert found.accepted == 4.0


def test_filters_see_the_drafts_and_a_stop_id_ends_the_row(model, draft):
    sampler = Greedy(RepetitionPenalty(3.0))
    free = ka.generate(model, ROWS[:1], 12, sampler).token_ids
    assert not np.array_equal(free, ka.generate(model, ROWS[:1], 12).token_ids)
    stops = [int(free[0, 6])]
    found = generate_speculative(model, draft, ROWS[:1], 12, sampler=sampler, stop_ids=stops)
    length = free[0].tolist().index(stops[0]) + 1
    np.testing.assert_array_equal(found.token_ids[0, :length], free[0, :length])
    np.testing.assert_array_equal(found.valid[0], np.arange(12) < length)
    assert not found.token_ids[0, length:].any()


def bigram_model(seed, size=4):
    """A model whose next token depends on the last one alone, and its matrix of logits."""
    inputs = {
        "token_ids": keras.Input((None,), dtype="int32", name="token_ids"),
        "valid": keras.Input((None,), dtype="bool", name="valid"),
    }
    x = ka.layers.TokenEmbedding(size, size, name="tokens")(inputs["token_ids"])
    model = keras.Model(inputs, ka.layers.CausalLMHead(size, name="head")(x))
    table = np.random.default_rng(seed).normal(size=(size, size)).astype("float32")
    model.set_weights([np.eye(size, dtype="float32"), table])
    return model, table.astype("float64")


@pytest.fixture(scope="module")
def bigrams():
    return *bigram_model(0), bigram_model(1)[0]


@pytest.mark.parametrize("sampler", [Sample(), Sample(Temperature(0.7), TopK(3))])
def test_sampled_tokens_are_distributed_as_the_models(bigrams, sampler):
    """Three tokens jointly, over 20,000 rows of one program."""
    model, table, draft = bigrams
    rows = 20_000
    found = generate_speculative(model, draft, [[2]] * rows, 3, 2, sampler=sampler, seed=1)
    if sampler.filters:
        table = np.where(table >= np.sort(table, axis=-1)[:, 1:2], table / 0.7, -np.inf)
    weights = np.exp(table)
    weights /= weights.sum(axis=-1, keepdims=True)
    expected = rows * np.einsum("a,ab,bc->abc", weights[2], weights, weights).ravel()
    counts = np.bincount(found.token_ids @ [16, 4, 1], minlength=64)
    possible = expected > 0
    assert not counts[~possible].any()
    statistic = ((counts - expected)[possible] ** 2 / expected[possible]).sum()
    # Within 4 deviations of the mean, by Wilson and Hilferty's cube root: 1 of 30,000 is not.
    freedom = possible.sum() - 1
    spread = 2 / (9 * freedom)
    assert (statistic / freedom) ** (1 / 3) < 1 - spread + 4 * spread**0.5
    assert 0.2 < found.accepted < 1.8


def test_seeds_reproduce(bigrams):
    model, _, draft = bigrams

    def run(seed):
        rows = [[2]] * 20
        return generate_speculative(model, draft, rows, 3, 2, Sample(), seed=seed).token_ids

    np.testing.assert_array_equal(run(5), run(5))
    assert not np.array_equal(run(5), run(6))
    assert not np.array_equal(run(None), run(None))


def test_no_prompts(model, draft):
    found = generate_speculative(model, draft, [], 4)
    assert found.token_ids.shape == (0, 4)
    assert found.accepted == 0.0


def _refuse(*arguments, message, **options):
    with pytest.raises(ValueError, match=message):
        generate_speculative(*arguments, **options)


def test_bad_input_is_named(model, draft):
    _refuse(model, draft, [[1]], 4, draft_tokens=0, message="draft_tokens=0")
    _refuse(model, draft, [[1, V]], 4, message=rf"prompts\[0\] has token id {V}")
    _refuse(model, draft, [[1] * 20], 5, message=rf"20 tokens.*={CONTEXT}")
    _refuse(model, draft, [[]], 5, message=r"prompts\[0\] is empty")
    other, _ = bigram_model(0)
    _refuse(model, other, [[1]], 4, message=f"draft of 4 tokens and a model of {V}")
    _refuse(model, recurrent_model(), [[1]], 4, message="'running_mean'.*cannot forget")


def test_the_drafts_context_counts_too():
    model = build(CONFIGS["gpt2"])
    shape = dict(vocabulary_size=V, width=8, layers=1, heads=2, context_length=10)
    draft = ka.models.gpt2(ka.models.GPT2Config(**shape))
    _refuse(model, draft, [[1] * 8], 5, message=r"draft model.*prompts\[0\].*context_length=10")


def test_angles_that_depend_on_the_length_are_refused():
    scaling = ka.layers.DynamicNTKScaling(2.0, context_length=8)
    stretched = build(dataclasses.replace(CONFIGS["llama"], rotary_scaling=scaling))
    _refuse(stretched, small("llama"), [[1]], 4, message="'block_0'.*length of the row.*NTK")
