import dataclasses

import numpy as np
import pytest
import scipy.optimize

import keras_arch as ka

pytestmark = pytest.mark.once

#: Hoffmann et al. 2022, section D.3, equation 10, and Besiroglu et al. 2024.
PUBLISHED = ka.analysis.ScalingLaw(1.69, 406.4, 0.34, 410.7, 0.28)
FITTED_AGAIN = ka.analysis.ScalingLaw(1.8172, 482.01, 0.3478, 2085.43, 0.3658)
N, D = (x.ravel() for x in np.meshgrid(np.geomspace(4e7, 1.6e10, 6), np.geomspace(1e9, 5e11, 6)))


def deviations(law, expected):
    pairs = zip(dataclasses.astuple(law), dataclasses.astuple(expected), strict=True)
    return [abs(value / right - 1.0) for value, right in pairs]


@pytest.mark.parametrize("law", [PUBLISHED, FITTED_AGAIN])
def test_known_constants_come_back(law):
    fitted = ka.analysis.fit_scaling_law(N, D, law.loss(N, D), resamples=0)
    assert max(deviations(fitted.law, law)) < 1e-6
    assert fitted.low == fitted.high == fitted.law
    assert fitted.draws == ()


def test_known_constants_come_back_from_noisy_losses_with_an_outlier():
    random = np.random.default_rng(1)
    losses = PUBLISHED.loss(N, D) * np.exp(2e-4 * random.standard_normal(len(N)))
    losses[7] *= 1.3  # a run that diverged: squared residuals would follow it
    fitted = ka.analysis.fit_scaling_law(N, D, losses, resamples=40)
    assert max(deviations(fitted.law, PUBLISHED)) < 0.02
    for name, right in dataclasses.asdict(PUBLISHED).items():
        assert getattr(fitted.low, name) < right < getattr(fitted.high, name)
        assert getattr(fitted.low, name) < getattr(fitted.law, name) < getattr(fitted.high, name)
    again = ka.analysis.fit_scaling_law(N, D, losses, resamples=40)
    assert again == fitted
    assert ka.analysis.fit_scaling_law(N, D, losses, resamples=40, seed=1).low != fitted.low


@pytest.mark.parametrize("flops", [1e19, 5.76e23])
@pytest.mark.parametrize("law", [PUBLISHED, FITTED_AGAIN])
def test_the_optimum_is_the_least_loss_of_the_budget(law, flops):
    parameters, tokens = law.optimal(flops)
    assert 6 * parameters * tokens == pytest.approx(flops, rel=1e-12)
    searched = scipy.optimize.minimize_scalar(
        lambda log_n: law.loss(np.exp(log_n), flops / 6 / np.exp(log_n)),
        bounds=(np.log(1e6), np.log(1e13)),
        method="bounded",
        options={"xatol": 1e-9},
    )
    assert parameters == pytest.approx(np.exp(searched.x), rel=1e-3)


def test_tokens_for_each_parameter_at_the_budget_of_gopher():
    parameters, tokens = FITTED_AGAIN.optimal(5.76e23)
    assert 15 < tokens / parameters < 25  # "20 tokens per parameter"
    parameters, tokens = PUBLISHED.optimal(5.76e23)
    assert 80 < tokens / parameters < 100  # the printed constants


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens": D[:-1]}, "as long as each other, 6 points or more"),
        ({"parameters": N[:5], "tokens": D[:5], "losses": N[:5]}, "6 points or more"),
        ({"losses": np.zeros(36)}, r"losses must be positive and finite; received 0\.0"),
        ({"tokens": np.full(36, np.inf)}, "tokens must be positive and finite; received inf"),
        ({"parameters": np.full(36, 7e8)}, "two values or more, .* received only 7e\\+08"),
        ({"confidence": 1.5}, "confidence must be between 0 and 1; received confidence=1.5"),
        ({"resamples": -1}, "resamples must be an integer, 0 or more; received resamples=-1"),
    ],
)
def test_bad_arguments_are_named(changes, message):
    arguments = {"parameters": N, "tokens": D, "losses": PUBLISHED.loss(N, D)} | changes
    with pytest.raises(ValueError, match=message):
        ka.analysis.fit_scaling_law(**arguments)


def test_a_budget_of_nothing_is_refused():
    with pytest.raises(ValueError, match="flops must be positive; received flops=0"):
        PUBLISHED.optimal(0)
