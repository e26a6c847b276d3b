"""How the next token is chosen from its logits: `Greedy()`, or `Sample` with composable filters."""

import dataclasses

from keras import ops

from keras_arch.checks import check_positive


@dataclasses.dataclass(frozen=True)
class Greedy:
    """Takes the most probable token; the first of equals."""

    def choose(self, logits, uniform):
        """Returns token ids int32 `[B]` for logits float32 `[B, V]`; `uniform` is not used."""
        return ops.cast(ops.argmax(logits, axis=-1), "int32")


@dataclasses.dataclass(frozen=True)
class Temperature:
    """Divides the logits by T: below 1 sharper, above 1 flatter.

    Raises:
        ValueError: If T is not positive. For T = 0 use `Greedy()`.
    """

    temperature: float

    sorts = False

    def __post_init__(self):
        if not self.temperature > 0:
            raise ValueError(
                f"temperature must be positive; received temperature={self.temperature}. "
                "Use Greedy() for the limit of 0."
            )

    def filter(self, logits):
        """Returns the logits, float32 `[B, V]`."""
        # The gap to the best is divided, so that a tiny T gives -inf and never inf - inf.
        return (logits - ops.max(logits, axis=-1, keepdims=True)) / self.temperature


@dataclasses.dataclass(frozen=True)
class TopK:
    """Keeps the k most probable tokens (Fan et al. 2018); of equals, those of lower id.

    Raises:
        ValueError: If k is not a positive integer.
    """

    k: int

    sorts = True

    def __post_init__(self):
        check_positive(k=self.k)

    def filter(self, logits):
        """Returns descending logits `[B, V]` with the rest at minus infinity."""
        kept = ops.arange(logits.shape[-1]) < self.k
        return ops.where(kept, logits, -float("inf"))


@dataclasses.dataclass(frozen=True)
class TopP:
    """Keeps the fewest most probable tokens that hold a probability of p, at least one.

    Source: Holtzman et al. 2020, section 3.1.

    Raises:
        ValueError: If p is outside [0, 1].
    """

    p: float

    sorts = True

    def __post_init__(self):
        if not 0.0 <= self.p <= 1.0:
            raise ValueError(f"p must be in [0, 1]; received p={self.p}.")

    def filter(self, logits):
        """Returns descending logits `[B, V]` with the rest at minus infinity."""
        if self.p == 1.0:
            return logits
        probabilities = ops.softmax(logits, axis=-1)
        before = ops.cumsum(probabilities, axis=-1) - probabilities
        first = ops.arange(logits.shape[-1]) == 0
        return ops.where(ops.logical_or(before < self.p, first), logits, -float("inf"))


class Sample:
    """Draws the next token after filtering: `Sample(Temperature(0.8), TopK(40), TopP(0.95))`.

    Filters apply in the order given; with none, the model's own distribution is drawn from.

    Args:
        *filters: `Temperature`, `TopK`, `TopP`, or any hashable object with `sorts` (whether it
            wants logits in descending order) and `filter(logits) -> logits`.

    Raises:
        ValueError: If something else is given.
    """

    def __init__(self, *filters):
        for part in filters:
            if not (hasattr(part, "filter") and hasattr(part, "sorts")):
                raise ValueError(
                    "filters must be Temperature, TopK, TopP or objects with the same members; "
                    f"received {part!r}."
                )
        self.filters = filters

    def __eq__(self, other):
        return isinstance(other, Sample) and self.filters == other.filters

    def __hash__(self):
        return hash((Sample, self.filters))

    def __repr__(self):
        return f"Sample({', '.join(map(repr, self.filters))})"

    def choose(self, logits, uniform):
        """Returns token ids int32 `[B]`.

        Args:
            logits: float32 `[B, V]`.
            uniform: float32 `[B]`, random in [0, 1).
        """
        if not any(part.sorts for part in self.filters):
            return self._draw(logits, uniform)
        order = ops.argsort(-logits, axis=-1)
        chosen = self._draw(ops.take_along_axis(logits, order, axis=-1), uniform)
        chosen = ops.take_along_axis(order, chosen[:, None], axis=-1)[:, 0]
        return ops.cast(chosen, "int32")

    def _draw(self, logits, uniform):
        """Filters, then inverts the cumulative distribution at `uniform`."""
        for part in self.filters:
            logits = part.filter(logits)
        cumulative = ops.cumsum(ops.softmax(logits, axis=-1), axis=-1)
        threshold = uniform[:, None] * cumulative[:, -1:]
        return ops.sum(ops.cast(cumulative <= threshold, "int32"), axis=-1)
