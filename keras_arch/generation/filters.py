"""Filters of what may come next: by its probability, or by what came before.

A filter is a hashable object with `filter(candidates, past) -> candidates` (see `Candidates` and
`Past`) and `reads_tokens`, whether it reads `past.token_ids` and `past.valid`.
"""

import dataclasses
import math
import numbers
from typing import Any

from keras import ops

from keras_arch.backend import sorts_fast
from keras_arch.checks import check_positive
from keras_arch.generation.candidates import put
from keras_arch.generation.nucleus import first_nucleus, nucleus

# Smaller temperatures count as this: logits of 1e8 divided by it are finite in float32.
LEAST_TEMPERATURE = 1e-30


def _check_number(name, value, low, high=math.inf, above=False):
    """Raises ValueError unless low <= value <= high (low < value if `above`) and it is finite."""
    if (
        isinstance(value, bool)
        or not isinstance(value, numbers.Real)
        or not math.isfinite(value)
        or not low <= value <= high
        or (above and value == low)
    ):
        wanted = "positive and finite" if above else f"in [{low}, {high}]"
        raise ValueError(f"{name} must be {wanted}; received {name}={value!r}.")


@dataclasses.dataclass(frozen=True)
class Temperature:
    """Divides the logits by T: below 1 sharper, above 1 flatter.

    Args:
        temperature: T; or a scalar tensor inside a program, where 0 keeps the best token alone.

    Raises:
        ValueError: If a number T is not positive and finite. For T = 0 use `Greedy()`.
    """

    temperature: Any

    reads_tokens = False

    def __post_init__(self):
        if not self._is_tensor():
            try:
                _check_number("temperature", self.temperature, 0, above=True)
            except ValueError as error:
                raise ValueError(f"{error} Use Greedy() for the limit of 0.") from None

    def _is_tensor(self):
        return hasattr(self.temperature, "shape") and not isinstance(
            self.temperature, numbers.Number
        )

    def filter(self, candidates, past=None):
        """Returns all candidates, with new logits."""
        logits = candidates.logits
        if not self._is_tensor():
            return candidates._replace(logits=logits / max(self.temperature, LEAST_TEMPERATURE))
        temperature = ops.cast(self.temperature, "float32")
        first = ops.arange(logits.shape[-1]) == ops.argmax(logits, axis=-1)[:, None]
        logits = ops.where(
            ops.logical_or(temperature > 0, first),
            logits / ops.maximum(temperature, LEAST_TEMPERATURE),
            -float("inf"),
        )
        return candidates._replace(logits=logits)


@dataclasses.dataclass(frozen=True)
class TopK:
    """Keeps the k most probable tokens (Fan et al. 2018); of equals, those of lower id.

    Raises:
        ValueError: If k is not a positive integer.
    """

    k: int

    reads_tokens = False

    def __post_init__(self):
        check_positive(k=self.k)

    def filter(self, candidates, past=None):
        """Returns the k, in descending order."""
        return candidates.top(self.k)


@dataclasses.dataclass(frozen=True)
class TopP:
    """Keeps the fewest most probable tokens that hold a probability of p, at least one.

    Source: Holtzman et al. 2020, section 3.1.

    Raises:
        ValueError: If p is outside [0, 1].
    """

    p: float

    reads_tokens = False

    def __post_init__(self):
        _check_number("p", self.p, 0, 1)

    def filter(self, candidates, past=None):
        """Returns the candidates, some of them forbidden."""
        if self.p == 1:
            return candidates
        if candidates.token_ids is None and not sorts_fast():
            kept = nucleus(candidates.logits, self.p)
        else:
            candidates = candidates.sort()
            kept = first_nucleus(candidates.probabilities(), self.p)
        return candidates._replace(logits=ops.where(kept, candidates.logits, -float("inf")))


@dataclasses.dataclass(frozen=True)
class MinP:
    """Keeps the tokens at least p times as probable as the most probable one.

    Source: Nguyen et al. 2024, section 3.

    Raises:
        ValueError: If p is outside [0, 1].
    """

    p: float

    reads_tokens = False

    def __post_init__(self):
        _check_number("p", self.p, 0, 1)

    def filter(self, candidates, past=None):
        """Returns the candidates, some of them forbidden."""
        if self.p == 0:
            return candidates
        logits = candidates.logits
        least = ops.max(logits, axis=-1, keepdims=True) + math.log(self.p)
        return candidates._replace(logits=ops.where(logits >= least, logits, -float("inf")))


@dataclasses.dataclass(frozen=True)
class RepetitionPenalty:
    """Divides the positive logits of tokens seen before by the penalty, multiplies the negative.

    Seen are the tokens of the prompt and those generated. Above 1 it discourages them.
    Source: Keskar et al. 2019, section 4.1.

    Raises:
        ValueError: If the penalty is not positive and finite.
    """

    penalty: float

    reads_tokens = True

    def __post_init__(self):
        _check_number("penalty", self.penalty, 0, above=True)

    def filter(self, candidates, past):
        """Returns all candidates, with new logits."""
        logits = candidates.logits
        seen = _of_tokens(candidates, past.token_ids, past.valid)
        penalised = ops.where(logits > 0, logits / self.penalty, logits * self.penalty)
        return candidates._replace(logits=ops.where(seen, penalised, logits), descending=False)


@dataclasses.dataclass(frozen=True)
class NoRepeatNGram:
    """Forbids a token that would make the last n tokens a run of n that was there before.

    Prompt and generated tokens count alike. A row where no candidate would be left keeps them all.
    Source: Paulus et al. 2017, section 2.5.

    Raises:
        ValueError: If n is not a positive integer.
    """

    n: int

    reads_tokens = True

    def __post_init__(self):
        check_positive(n=self.n)

    def filter(self, candidates, past):
        """Returns the candidates, some of them forbidden."""
        length = ops.shape(past.valid)[1]
        padding = ((0, 0), (self.n - 1, 0))
        token_ids = ops.pad(past.token_ids, padding)
        valid = ops.pad(past.valid, padding)
        # Of each row's last token, the place among the padded ones.
        place = ops.arange(1, length + 1, dtype="int32")
        last = ops.max(ops.where(past.valid, place, 0), axis=1, keepdims=True) + self.n - 2
        repeated = past.valid
        for back in range(1, self.n):
            # Slot j beside the token `back` before it; and the token `back` before the new one.
            begin = self.n - 1 - back
            before, there = token_ids[:, begin:-back], valid[:, begin:-back]
            now = ops.take_along_axis(token_ids, last - (back - 1), axis=1)
            repeated = ops.logical_and(repeated, ops.logical_and(there, before == now))
        return candidates.forbid(_of_tokens(candidates, past.token_ids, repeated))


@dataclasses.dataclass(frozen=True)
class MinimumLength:
    """Forbids the stop ids until n tokens are generated.

    Raises:
        ValueError: If n is not a positive integer.
    """

    n: int

    reads_tokens = False

    def __post_init__(self):
        check_positive(n=self.n)

    def filter(self, candidates, past):
        """Returns the candidates, maybe without the stop ids."""
        stops = ops.any(candidates.ids()[..., None] == past.stop_ids, axis=-1)
        early = ops.reshape(past.steps, (-1, 1)) < self.n
        return candidates.forbid(ops.logical_and(stops, early))


def _of_tokens(candidates, token_ids, marked):
    """Returns bool `[B, C]`: whether a candidate is among the marked ones of ids `[B, L]`."""
    outside = candidates.vocabulary_size
    token_ids = ops.where(marked, token_ids, outside)
    return candidates.pick(put(token_ids, ops.ones_like(marked), outside))
