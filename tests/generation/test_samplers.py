import numpy as np
import pytest
from keras import ops

from keras_arch.backend import compile_function
from keras_arch.generation import (
    Greedy,
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
from keras_arch.generation.random import row_uniforms

PROBABILITIES = np.array([0.15, 0.5, 0.05, 0.3])
DRAWS = 20_000


def choices(sampler, probabilities, uniform, past=None):
    """Chooses once for each of the numbers in [0, 1)."""
    logits = np.log(np.maximum(probabilities, 1e-30)).astype("float32")
    logits = np.tile(logits, (len(uniform), 1))
    chosen = sampler.choose(*map(ops.convert_to_tensor, (logits, uniform)), past)
    chosen = ops.convert_to_numpy(chosen)
    assert chosen.dtype == "int32"
    return np.bincount(chosen, minlength=len(probabilities))


def frequencies(sampler, probabilities=PROBABILITIES):
    """The shares of an evenly spread number's choices: the distribution up to 1 / draws."""
    uniform = ((np.arange(DRAWS) + 0.5) / DRAWS).astype("float32")
    return choices(sampler, probabilities, uniform) / DRAWS


def renormalised(kept):
    probabilities = np.where(np.isin(np.arange(4), kept), PROBABILITIES, 0.0)
    return probabilities / probabilities.sum()


KEPT = [
    ((), [0, 1, 2, 3]),
    ((TopP(0.0),), [1]),
    # Exactly what the best has, 0.5, is held by it alone.
    ((TopP(0.5),), [1]),
    ((TopP(0.55),), [1, 3]),
    ((TopP(1.0),), [0, 1, 2, 3]),
    ((TopK(1),), [1]),
    ((TopK(3),), [0, 1, 3]),
    ((TopK(99),), [0, 1, 2, 3]),
    # After TopK(2) the two have 0.625 and 0.375: TopP sees those.
    ((TopK(2), TopP(0.65)), [1, 3]),
    ((TopK(2), TopP(0.6)), [1]),
    # Of the best, 0.5, at least 0.15 and 0.35.
    ((MinP(0.29),), [0, 1, 3]),
    ((MinP(0.7),), [1]),
    ((TopP(0.9), MinP(0.5)), [1, 3]),
]


@pytest.mark.parametrize(("filters", "kept"), KEPT)
def test_filters_keep_the_right_tokens_and_renormalise(filters, kept):
    expected = renormalised(kept)
    np.testing.assert_allclose(frequencies(Sample(*filters)), expected, atol=2 / DRAWS)


@pytest.mark.parametrize(("filters", "kept"), KEPT)
def test_random_draws_follow_the_distribution(filters, kept):
    seed = ops.convert_to_tensor(np.array([11, 5], "int32"))
    uniform = ops.convert_to_numpy(row_uniforms(seed, DRAWS, 0))
    counts, expected = choices(Sample(*filters), PROBABILITIES, uniform), renormalised(kept) * DRAWS
    assert counts[expected == 0].sum() == 0
    some = expected > 0
    # 16.3 is passed once in a thousand with 3 degrees of freedom, the most there are here.
    assert ((counts - expected)[some] ** 2 / expected[some]).sum() < 16.3


def test_temperature_divides_the_logits():
    # Logits 0 and ln 4 at T = 2: weights 1 and 4 ** (1 / 2).
    measured = frequencies(Sample(Temperature(2.0)), np.array([0.2, 0.8]))
    np.testing.assert_allclose(measured, [1 / 3, 2 / 3], atol=2 / DRAWS)


@pytest.mark.parametrize("temperature", [1e-6, 1e-40])
def test_a_tiny_temperature_is_greedy(temperature):
    tiny = Temperature(temperature)
    for filters in ((tiny,), (tiny, TopK(3)), (TopP(0.9), tiny), (tiny, MinP(0.1))):
        np.testing.assert_array_equal(frequencies(Sample(*filters)), [0, 1, 0, 0])


def test_equal_tokens_are_kept_by_id():
    measured = frequencies(Sample(TopK(2)), np.full(4, 0.25))
    np.testing.assert_allclose(measured, [0.5, 0.5, 0, 0], atol=2 / DRAWS)


def test_a_token_without_probability_is_never_drawn():
    logits = ops.convert_to_tensor(np.array([[0.0, 0.0, -np.inf]], "float32"))
    largest = ops.convert_to_tensor(np.array([1 - 2.0**-23], "float32"))
    assert int(Sample().choose(logits, largest)[0]) == 1


@pytest.mark.parametrize(
    "sampler",
    [Greedy(), Greedy(TopK(2)), Greedy(Temperature(0.5), TopP(0.9)), Sample(TopK(1))],
    ids=repr,
)
def test_greedy_takes_the_first_of_the_best(sampler):
    logits = ops.convert_to_tensor(np.array([[0.0, 2.0, 2.0], [3.0, 1.0, 2.0]], "float32"))
    uniform = ops.convert_to_tensor(np.array([0.99, 0.99], "float32"))
    assert ops.convert_to_numpy(sampler.choose(logits, uniform)).tolist() == [1, 0]
    expected = [[0, 1, 0], [1, 0, 0]]
    assert ops.convert_to_numpy(sampler.probabilities(logits)).tolist() == expected


def test_greedy_filters_too():
    logits = ops.convert_to_tensor(np.array([[4.0, 3.0, 2.0]], "float32"))
    rows = ([[0, 1]], [[True, True]])
    past = Past(2, ops.zeros((0,), "int32"), *map(ops.convert_to_tensor, map(np.array, rows)))
    # 4 / 1.5 < 3 / 1, and of a token that was there too: 3 / 1.5.
    assert int(Greedy(RepetitionPenalty(1.5)).choose(logits, past=past)[0]) == 0
    assert int(Greedy(RepetitionPenalty(2.5)).choose(logits, past=past)[0]) == 2
    assert int(Greedy(TopK(2), RepetitionPenalty(2.5)).choose(logits, past=past)[0]) == 0


@pytest.mark.parametrize(
    "sampler", [Greedy(), Sample(), Sample(Temperature(0.8)), Sample(TopK(3), TopP(0.99))], ids=repr
)
def test_a_temperature_of_0_in_a_tensor_is_greedy(sampler):
    logits = np.tile(np.array([1.0, 3.0, 3.0, 2.0], "float32"), (3, 1))
    uniform = np.array([0.0, 0.6, 0.999], "float32")

    def run(temperature):
        tensors = map(ops.convert_to_tensor, (logits, uniform))
        return sampler.with_temperature(temperature).choose(*tensors)

    program = compile_function(run, [])
    # Of the two best, the first, whatever number is drawn.
    assert ops.convert_to_numpy(program(np.float32(0.0))).tolist() == [1, 1, 1]
    assert ops.convert_to_numpy(program(np.float32(1e4))).tolist() != [1, 1, 1]


def test_a_temperature_takes_its_place():
    half, own = Temperature(0.5), Temperature(2.0)
    assert Sample(TopK(4), own, TopP(0.5)).with_temperature(0.5) == Sample(TopK(4), half, TopP(0.5))
    assert Sample(own, TopK(4), own).with_temperature(0.5) == Sample(half, TopK(4))
    assert Greedy().with_temperature(0.5) == Sample(half)
    seen = RepetitionPenalty(1.2), NoRepeatNGram(2)
    assert Greedy(*seen, TopP(0.5)).with_temperature(0.5) == Sample(*seen, half, TopP(0.5))
    with pytest.raises(ValueError, match=r"temperature=0.*Greedy\(\)"):
        Sample().with_temperature(0)


def test_samplers_know_what_they_read():
    assert not Sample(
        Temperature(0.8), TopK(4), TopP(0.5), MinP(0.1), MinimumLength(3)
    ).reads_tokens
    assert Greedy(RepetitionPenalty(1.2)).reads_tokens
    assert Sample(TopK(4), NoRepeatNGram(2)).reads_tokens


def test_equal_samplers_are_one_key():
    first, second = Sample(Temperature(0.8), TopK(4)), Sample(Temperature(0.8), TopK(4))
    assert first == second
    assert hash(first) == hash(second)
    assert first != Sample(TopK(4), Temperature(0.8))
    assert Greedy(TopK(4)) == Greedy(TopK(4))
    assert Greedy(TopK(4)) != Sample(TopK(4))
    assert repr(Greedy(TopK(4), MinP(0.1))) == "Greedy(TopK(k=4), MinP(p=0.1))"


@pytest.mark.parametrize("kind", [Greedy, Sample])
@pytest.mark.parametrize("wrong", [0.8, TopK, "TopK", None], ids=repr)
def test_what_is_no_filter_is_named(kind, wrong):
    with pytest.raises(ValueError, match=r"Temperature\(\.\.\.\).*received"):
        kind(wrong)
