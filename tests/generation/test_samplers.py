import numpy as np
import pytest
from keras import ops

from keras_arch.generation.samplers import Greedy, Sample, Temperature, TopK, TopP

PROBABILITIES = np.array([0.15, 0.5, 0.05, 0.3])
DRAWS = 20_000


def frequencies(sampler, probabilities=PROBABILITIES, draws=DRAWS):
    """Counts what an evenly spread number chooses: the sampler's distribution up to 1 / draws."""
    logits = np.log(np.maximum(probabilities, 1e-30)).astype("float32")
    logits = ops.convert_to_tensor(np.tile(logits, (draws, 1)))
    uniform = ops.convert_to_tensor(((np.arange(draws) + 0.5) / draws).astype("float32"))
    chosen = ops.convert_to_numpy(sampler.choose(logits, uniform))
    assert chosen.dtype == "int32"
    return np.bincount(chosen, minlength=len(probabilities)) / draws


def renormalised(kept):
    probabilities = np.where(np.isin(np.arange(4), kept), PROBABILITIES, 0.0)
    return probabilities / probabilities.sum()


@pytest.mark.parametrize(
    ("filters", "kept"),
    [
        ((), [0, 1, 2, 3]),
        ((TopP(0.0),), [1]),
        ((TopP(0.45),), [1]),
        ((TopP(0.55),), [1, 3]),
        ((TopP(1.0),), [0, 1, 2, 3]),
        ((TopK(1),), [1]),
        ((TopK(3),), [0, 1, 3]),
        ((TopK(99),), [0, 1, 2, 3]),
        ((TopK(2), TopP(0.65)), [1, 3]),
        ((TopK(2), TopP(0.6)), [1]),
    ],
)
def test_filters_keep_the_right_tokens_and_renormalise(filters, kept):
    # After TopK(2) the two have 0.625 and 0.375: TopP sees those.
    measured = frequencies(Sample(*filters))
    np.testing.assert_allclose(measured, renormalised(kept), atol=2 / DRAWS)


def test_temperature_divides_the_logits():
    # Logits 0 and ln 4 at T = 2: weights 1 and 4 ** (1 / 2).
    measured = frequencies(Sample(Temperature(2.0)), np.array([0.2, 0.8]))
    np.testing.assert_allclose(measured, [1 / 3, 2 / 3], atol=2 / DRAWS)


def test_a_tiny_temperature_is_greedy():
    for filters in ((Temperature(1e-6),), (Temperature(1e-6), TopK(3))):
        np.testing.assert_array_equal(frequencies(Sample(*filters)), [0, 1, 0, 0])


def test_equal_tokens_are_kept_by_id():
    measured = frequencies(Sample(TopK(2)), np.full(4, 0.25))
    np.testing.assert_allclose(measured, [0.5, 0.5, 0, 0], atol=2 / DRAWS)


def test_a_token_without_probability_is_never_drawn():
    logits = ops.convert_to_tensor(np.array([[0.0, 0.0, -np.inf]], "float32"))
    largest = ops.convert_to_tensor(np.array([1 - 2.0**-23], "float32"))
    assert int(Sample().choose(logits, largest)[0]) == 1


def test_greedy_takes_the_first_of_the_best():
    logits = ops.convert_to_tensor(np.array([[0.0, 2.0, 2.0], [3.0, 1.0, 2.0]], "float32"))
    assert ops.convert_to_numpy(Greedy().choose(logits, None)).tolist() == [1, 0]


def test_equal_samplers_are_one_key():
    first, second = Sample(Temperature(0.8), TopK(4)), Sample(Temperature(0.8), TopK(4))
    assert first == second
    assert hash(first) == hash(second)
    assert first != Sample(TopK(4), Temperature(0.8))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Temperature(0.0), r"temperature=0\.0.*Greedy\(\)"),
        (lambda: Temperature(float("nan")), "temperature=nan"),
        (lambda: TopK(0), "k=0"),
        (lambda: TopK(2.5), r"k=2\.5"),
        (lambda: TopP(1.2), r"p=1\.2"),
        (lambda: Sample(0.8), r"received 0\.8"),
    ],
)
def test_bad_values_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
