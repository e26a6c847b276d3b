"""The scaling law of language models: their loss as a function of parameters and tokens.

Source: Hoffmann et al. 2022, sections 3.3 and D.3. Some lectures say that a decoder needs 300
tokens a parameter, or that twice the model needs four times the data: in the paper parameters and
tokens grow alike, about as the square root of the compute, at some 20 tokens a parameter. The
constants printed for its third approach, rounded and from a search that stopped early, say 50 to
90; Besiroglu et al. 2024 fit the same models again and come to 20.
"""

import dataclasses
import itertools
import math

import numpy as np

from keras_arch.checks import check_count, check_fraction, check_positive_number

#: Residuals of the logarithm above this count linearly (Hoffmann et al. 2022, section D.3).
HUBER_DELTA = 1e-3
#: Where the search for (log E, log A, alpha, log B, beta) begins, as in the same section.
_STARTS = list(
    itertools.product(
        np.arange(-1.0, 1.1, 0.5),
        np.arange(0.0, 26.0, 5.0),
        np.arange(0.0, 2.1, 0.5),
        np.arange(0.0, 26.0, 5.0),
        np.arange(0.0, 2.1, 0.5),
    )
)


@dataclasses.dataclass(frozen=True)
class ScalingLaw:
    """`L(N, D) = E + A / N**alpha + B / D**beta`, in nats a token.

    Attributes:
        irreducible: E, the entropy of the text.
        parameter_scale: A.
        parameter_power: alpha.
        token_scale: B.
        token_power: beta.
    """

    irreducible: float
    parameter_scale: float
    parameter_power: float
    token_scale: float
    token_power: float

    def loss(self, parameters, tokens):
        """Returns the loss of models with N `parameters` trained on D `tokens`, in nats a token."""
        return (
            self.irreducible
            + self.parameter_scale / np.asarray(parameters, "float64") ** self.parameter_power
            + self.token_scale / np.asarray(tokens, "float64") ** self.token_power
        )

    def optimal(self, flops):
        """Returns the `(parameters, tokens)` of the least loss for a budget of training FLOPs.

        A token costs 6 FLOPs a parameter: two for the product forwards, twice that for the two
        products backwards. With `N * D = flops / 6` the least of `loss` is at
        `N = G * (flops / 6)**(beta / (alpha + beta))`, `G = (alpha A / (beta B))**(1 / (alpha +
        beta))` (section 3.3, equation 4).

        Raises:
            ValueError: If `flops` is not positive.
        """
        check_positive_number(flops=flops)
        alpha, beta = self.parameter_power, self.token_power
        ratio = (alpha * self.parameter_scale) / (beta * self.token_scale)
        product = flops / 6
        parameters = ratio ** (1 / (alpha + beta)) * product ** (beta / (alpha + beta))
        return parameters, product / parameters


@dataclasses.dataclass(frozen=True)
class FittedLaw:
    """A scaling law and how sure it is.

    Attributes:
        law: The ScalingLaw of all points.
        low: The lower ends of the intervals of its constants, as a ScalingLaw.
        high: The upper ends.
        draws: The laws of the bootstrap, for intervals of what follows from a law.
    """

    law: ScalingLaw
    low: ScalingLaw
    high: ScalingLaw
    draws: tuple


def fit_scaling_law(parameters, tokens, losses, resamples=100, confidence=0.95, seed=0):
    """Fits a ScalingLaw to trained models by the Huber loss of `log L`, with bootstrap intervals.

    The residuals are summed, and the search goes on until it stands still: the published fit
    averaged them and stopped early (Besiroglu et al. 2024). Needs SciPy.

    Args:
        parameters: N of each model, `[points]`.
        tokens: D, the tokens that each was trained on, its learning rate decayed at their end.
        losses: L, their losses in nats a token.
        resamples: Draws of as many points with replacement; 0: no intervals, `low` and `high`
            are the law.
        confidence: Share of the draws between `low` and `high`.
        seed: Of the draws.

    Returns:
        FittedLaw.

    Raises:
        ValueError: If the three do not have the same length, there are fewer than 6 points, not
            two values each of N and D, a value is not positive and finite, or an argument is out of
            range.
    """
    check_count(resamples=resamples, seed=seed)
    check_fraction(confidence=confidence)
    points = _points(parameters, tokens, losses)
    best = _search(points, _likely_starts(points))
    random = np.random.default_rng(seed)
    draws = [best]
    for _ in range(resamples):
        draws.append(_search(_resampled(points, random), [best]))
    tail = (1.0 - confidence) / 2
    bounds = np.quantile(np.array(draws[1:] or draws), [tail, 1.0 - tail], axis=0)
    return FittedLaw(_law(best), *map(_law, bounds), tuple(map(_law, draws[1:])))


def _points(parameters, tokens, losses):
    """Returns the logarithms of N, D and L, float64 `[3, points]`."""
    named = {"parameters": parameters, "tokens": tokens, "losses": losses}
    arrays = {name: np.asarray(values, "float64") for name, values in named.items()}
    shapes = {name: array.shape for name, array in arrays.items()}
    if len(set(shapes.values())) > 1 or arrays["losses"].ndim != 1 or len(arrays["losses"]) < 6:
        raise ValueError(
            "parameters, tokens and losses must be as long as each other, 6 points or more: the "
            f"law has 5 constants; received the shapes {shapes}."
        )
    for name, array in arrays.items():
        wrong = array[~(np.isfinite(array) & (array > 0))]
        if len(wrong):
            raise ValueError(f"{name} must be positive and finite; received {wrong[0]}.")
    for name in ("parameters", "tokens"):
        if len(set(arrays[name].tolist())) < 2:
            raise ValueError(
                f"{name} must have two values or more, to learn from; received only "
                f"{arrays[name][0]:g}."
            )
    return np.log(np.stack(list(arrays.values())))


def _resampled(points, random):
    """Returns as many points, drawn with replacement, of which no fit would be arbitrary."""
    while True:
        drawn = points[:, random.integers(0, points.shape[1], points.shape[1])]
        if all(len(set(row.tolist())) > 1 for row in drawn[:2]):
            return drawn


def _terms(constants, points):
    """Returns the logarithms of the law's three terms, `[..., 3, points]`."""
    e, a, alpha, b, beta = np.moveaxis(np.asarray(constants)[..., None], -2, 0)
    terms = np.broadcast_arrays(e + 0 * points[0], a - alpha * points[0], b - beta * points[1])
    return np.stack(terms, axis=-2)


def _residuals(constants, points):
    """Returns `log L(N, D)` of the law less that of the points, `[..., points]`."""
    return np.logaddexp.reduce(_terms(constants, points), axis=-2) - points[2]


def _jacobian(constants, points):
    """Returns the derivatives of the residuals, `[points, 5]`."""
    terms = _terms(constants, points)
    shares = np.exp(terms - np.logaddexp.reduce(terms, axis=-2))
    e, a, b = shares
    return np.stack([e, a, -a * points[0], b, -b * points[1]], axis=-1)


def _likely_starts(points, count=24):
    """Returns the starts whose laws are nearest to the points."""
    size = np.abs(_residuals(_STARTS, points))
    huber = np.where(size <= HUBER_DELTA, size**2 / 2, HUBER_DELTA * (size - HUBER_DELTA / 2))
    return [_STARTS[i] for i in np.argsort(huber.sum(axis=-1), kind="stable")[:count]]


def _search(points, starts):
    """Returns the constants (log E, log A, alpha, log B, beta) of the least Huber loss."""
    from scipy.optimize import least_squares

    found = [
        least_squares(
            _residuals,
            start,
            _jacobian,
            loss="huber",
            f_scale=HUBER_DELTA,
            x_scale="jac",
            xtol=1e-12,
            ftol=1e-12,
            gtol=1e-14,
            max_nfev=2_000,
            args=(points,),
        )
        for start in starts
    ]
    return min(found, key=lambda result: result.cost).x


def _law(constants):
    e, a, alpha, b, beta = map(float, constants)
    return ScalingLaw(math.exp(e), math.exp(a), alpha, math.exp(b), beta)
