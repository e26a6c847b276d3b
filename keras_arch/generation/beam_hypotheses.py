"""Hypotheses of beam search: the beams, and those that are finished."""

from typing import Any, NamedTuple

from keras import ops

from keras_arch.backend import top_places, write_slots
from keras_arch.generation.beam_entries import take_entries


class Hypotheses(NamedTuple):
    """Token sequences, W of each row.

    Attributes:
        token_ids: int32 `[R, W, N]`; zeros after the last.
        log_probabilities: float32 `[R, W, N]`, of each token.
        totals: float32 `[R, W]`, their sums; minus infinity: there is none at this place.
    """

    token_ids: Any
    log_probabilities: Any
    totals: Any

    def take(self, places):
        """Returns those at int places `[R, C]`."""
        return Hypotheses(*(take_entries(x, places) for x in self))

    def extend(self, found, i):
        """Returns all of the `Extensions` found, each with its token in column `i`."""
        pairs = [
            (self.token_ids, found.token_ids),
            (self.log_probabilities, found.log_probabilities),
        ]
        columns = [
            write_slots(take_entries(x, found.beams), new[..., None], i, axis=2) for x, new in pairs
        ]
        return Hypotheses(*columns, found.totals)


def no_hypotheses(rows_and_width, columns):
    """Returns `Hypotheses` with none at any place.

    Args:
        rows_and_width: int32 tensor `[R, W]`, whose shape is taken.
        columns: Python int N.
    """
    token_ids = ops.zeros_like(rows_and_width)[..., None] + ops.zeros((columns,), "int32")
    none = ops.full_like(rows_and_width, -float("inf"), dtype="float32")
    return Hypotheses(token_ids, ops.cast(token_ids, "float32"), none)


class Finished(NamedTuple):
    """The best finished hypotheses, best first.

    Attributes:
        hypotheses: `Hypotheses`.
        counts: int32 `[R, W]`, tokens of each.
        scores: float32 `[R, W]`; minus infinity: there is none at this place.
        done: bool `[R]`, rows that take no more.
    """

    hypotheses: Any
    counts: Any
    scores: Any
    done: Any

    def add(self, new, count, scores):
        """Returns the best of these and of new ones, W again; of equals, the earlier.

        Args:
            new: `Hypotheses`, W of each row.
            count: int32 scalar, tokens of each.
            scores: float32 `[R, W]`; minus infinity: not to be added.
        """
        scores = ops.where(self.done[:, None], -float("inf"), scores)
        counts = ops.zeros_like(self.counts) + count
        best = top_places(ops.concatenate([self.scores, scores], axis=1), self.counts.shape[1])
        both = [*self.hypotheses, self.counts, self.scores], [*new, counts, scores]
        *hypotheses, counts, scores = (
            take_entries(ops.concatenate(pair, axis=1), best) for pair in zip(*both, strict=True)
        )
        return Finished(Hypotheses(*hypotheses), counts, scores, self.done)

    def best(self, n):
        """Returns `(Hypotheses, counts)` of the n best; zeros where there are fewer."""
        places = top_places(self.scores, n)
        scores = take_entries(self.scores, places)
        some = scores > -float("inf")
        counts = ops.where(some, take_entries(self.counts, places), 0)
        token_ids, log_probabilities, totals = self.hypotheses.take(places)
        valid = ops.arange(token_ids.shape[-1], dtype="int32") < counts[..., None]
        return (
            ops.where(valid, token_ids, 0),
            valid,
            ops.where(valid, log_probabilities, 0.0),
            ops.where(some, totals, -float("inf")),
            scores,
        )
