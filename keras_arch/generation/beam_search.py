"""How beams are searched: the options, and what becomes of a log-probability."""

import dataclasses
import math
import numbers

from keras import ops

from keras_arch.checks import check_positive
from keras_arch.generation.beam_coverage import coverage_name


@dataclasses.dataclass(frozen=True)
class BeamSearch:
    """Keeps the `width` most probable beginnings of each row, and extends them token by token.

    Of all tokens after all beams of a row the most probable are looked at, best first: one that
    ends the row (a stop id, or any at the limit) makes its beam a finished hypothesis if it is
    among the first `width`; of the others the first `width` are the new beams. A finished
    hypothesis never changes. The `width` best of them are kept, by score: the sum L of the tokens'
    log-probabilities over `length_penalty(tokens, alpha)`. Width 1 is greedy search.

    Args:
        width: W, beams of a row.
        length_penalty: alpha; 0: the score is the sum itself; above 0 long hypotheses gain, below 0
            short ones. For translation 0.6 to 1 is usual (Wu et al. 2016, section 7).
        coverage_penalty: beta, not negative; hypotheses lose `beta * -sum(log(min(c, 1)))`, c being
            how often each source token was attended to, so that none is left out (Wu et al. 2016,
            equation 14: 0.2 there). Needs a model with an `AttentionDecoder`.
        early_stopping: When a row is done that has W finished hypotheses. True: at once. False: if
            its best beam, were it finished at its present length, would score no better than the
            worst of them. "never": if no beam can come to a better score at any length up to the
            limit; this alone is exact where `length_penalty` is positive.
        n_best: Hypotheses returned of each row, at most W; how many never changes which.
        groups: G, divides W. Each group searches with W / G beams of its own and avoids the tokens
            that the groups before it went on by at the same step (Vijayakumar et al. 2016, section
            4). Two groups may still come to the same hypothesis.
        diversity: What a token loses of its log-probability for each beam of an earlier group that
            chose it (Hamming diversity); in the choice alone, not in scores. Needs `groups`.

    Raises:
        ValueError: If a size is not positive, n_best is above W, G does not divide W, a penalty is
            not finite, `diversity` is negative or without groups, or `early_stopping` is unknown.
    """

    width: int
    length_penalty: float = 0.0
    coverage_penalty: float = 0.0
    early_stopping: bool | str = False
    n_best: int = 1
    groups: int = 1
    diversity: float = 0.0

    def __post_init__(self):
        check_positive(width=self.width, n_best=self.n_best, groups=self.groups)
        if self.n_best > self.width:
            raise ValueError(
                f"n_best must be at most width; received n_best={self.n_best}, width={self.width}."
            )
        if self.width % self.groups:
            raise ValueError(
                f"groups must divide width; received groups={self.groups}, width={self.width}."
            )
        for name in ("length_penalty", "coverage_penalty", "diversity"):
            _check_finite(name, getattr(self, name))
        if self.coverage_penalty < 0:
            raise ValueError(
                "coverage_penalty must not be negative; received "
                f"coverage_penalty={self.coverage_penalty}."
            )
        if self.diversity < 0 or (self.diversity > 0 and self.groups == 1):
            raise ValueError(
                "diversity must be 0, or positive with groups of 2 or more; received "
                f"diversity={self.diversity}, groups={self.groups}."
            )
        if not (isinstance(self.early_stopping, bool) or self.early_stopping == "never"):
            raise ValueError(
                "early_stopping must be False, True or 'never'; received "
                f"early_stopping={self.early_stopping!r}."
            )

    @property
    def group_width(self):
        """Beams of a group."""
        return self.width // self.groups

    def score(self, log_probability, tokens, log_coverage=0.0):
        """Returns the score of hypotheses.

        Args:
            log_probability: float32 tensor, sums of the tokens' log-probabilities, in nats.
            tokens: int32 tensor, generated tokens of each, the stop id included.
            log_coverage: float32 tensor, see `beam_coverage`; never positive.
        """
        score = log_probability / length_penalty(tokens, self.length_penalty)
        return score + self.coverage_penalty * log_coverage if self.coverage_penalty else score

    def attainable(self, log_probability, tokens, limit):
        """Returns the score that beams are credited with where a row asks whether to go on.

        Args:
            log_probability: As in `score`; so is `tokens`. The coverage may still become full.
            limit: int32 scalar, most tokens of a hypothesis.
        """
        # Sums only fall; what they are divided by grows with the tokens where alpha is positive.
        farsighted = self.early_stopping == "never" and self.length_penalty > 0
        return self.score(log_probability, limit if farsighted else tokens)

    @property
    def stops_when_full(self):
        """Whether a row is done with its W-th hypothesis; one beam has no other to wait for."""
        return self.early_stopping is True or self.group_width == 1


def check_search(search, stepper, vocabulary_size):
    """Raises ValueError if that is no `BeamSearch`, or does not go with the model."""
    if not isinstance(search, BeamSearch):
        raise ValueError(f"search must be a BeamSearch(...); received search={search!r}.")
    if search.width > vocabulary_size:
        raise ValueError(
            "width must be at most the size of the vocabulary; received "
            f"width={search.width}, a vocabulary of {vocabulary_size} tokens."
        )
    if search.coverage_penalty:
        coverage_name(stepper)


def length_penalty(tokens, alpha):
    """Returns `((5 + tokens) / 6) ** alpha`, float32. Source: Wu et al. 2016, equation 14."""
    return ((5.0 + ops.cast(tokens, "float32")) / 6.0) ** alpha


def _check_finite(name, value):
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number; received {name}={value!r}.")
