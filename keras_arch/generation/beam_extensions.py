"""The tokens that beams are extended by."""

from typing import Any, NamedTuple

from keras import ops

from keras_arch.backend import top_places
from keras_arch.generation.beam_entries import take_entries


class Extensions(NamedTuple):
    """The best tokens after the W beams of a row, best first; C of them.

    Attributes:
        beams: int32 `[R, C]`, the beam that is extended.
        token_ids: int32 `[R, C]`.
        log_probabilities: float32 `[R, C]`, of the token.
        totals: float32 `[R, C]`, of beam and token; minus infinity where there is no such beam.
        stopped: bool `[R, C]`, whether the token is a stop id.
        next: int32 `[R, W]`, the places of the first W that go on; then of those that stopped.
    """

    beams: Any
    token_ids: Any
    log_probabilities: Any
    totals: Any
    stopped: Any
    next: Any


def extend(logits, totals, stop_ids, penalty=None):
    """Returns `Extensions`: enough for W finished hypotheses and W new beams.

    Args:
        logits: float32 `[R, W, V]`.
        totals: float32 `[R, W]`, log-probabilities of the beams.
        stop_ids: int32 `[any]`.
        penalty: float32 `[R, V]`, what tokens lose in the choice alone; or None.
    """
    width, size = logits.shape[1:]
    wanted = width * (1 + stop_ids.shape[0])
    few = min(wanted, size)
    preferred = logits if penalty is None else logits - penalty[:, None]
    # First the best of each beam: sums are made, and sorted, of these alone.
    token_ids = ops.cast(top_places(ops.reshape(preferred, (-1, size)), few), "int32")
    token_ids = ops.reshape(token_ids, (-1, width, few))
    log_probabilities, preferred = (
        ops.take_along_axis(x, token_ids, axis=2) - ops.logsumexp(logits, axis=2, keepdims=True)
        for x in (logits, preferred)
    )
    totals = totals[..., None]
    of_beams = token_ids, log_probabilities, totals + log_probabilities, totals + preferred
    *columns, preferred = (ops.reshape(x, (-1, width * few)) for x in of_beams)
    best = ops.cast(top_places(preferred, min(wanted, width * few)), "int32")
    token_ids, log_probabilities, totals = (take_entries(x, best) for x in columns)
    stopped = ops.any(token_ids[..., None] == stop_ids, axis=-1)
    order = ops.arange(best.shape[1], dtype="float32")
    order = ops.where(stopped, order + best.shape[1], order)
    go_on = ops.cast(top_places(-order, width), "int32")
    return Extensions(best // few, token_ids, log_probabilities, totals, stopped, go_on)


def extend_groups(logits, totals, stop_ids, done, diversity):
    """Returns `Extensions` of groups that avoid the tokens of the groups before them.

    Source: Vijayakumar et al. 2016, section 4, with Hamming diversity.

    Args:
        logits: float32 `[B, G, W, V]`.
        totals: float32 `[B, G, W]`, log-probabilities of the beams.
        stop_ids: int32 `[any]`.
        done: bool `[B, G]`, groups that choose no more.
        diversity: What a token loses for each beam that chose it.

    Returns:
        Those of R = B * G rows, the groups of a row together.
    """
    chosen, groups = ops.zeros_like(logits[:, 0, 0]), []
    for g in range(logits.shape[1]):
        groups.append(extend(logits[:, g], totals[:, g], stop_ids, diversity * chosen))
        chosen = chosen + _times_chosen(groups[-1], done[:, g], logits.shape[-1])
    return Extensions(
        *(ops.reshape(ops.stack(x, axis=1), (-1, x[0].shape[1])) for x in zip(*groups, strict=True))
    )


def _times_chosen(found, done, size):
    """Returns by how many beams of a row each token is chosen, float32 `[R, V]`."""
    token_ids, totals, stopped = (
        take_entries(x, found.next) for x in (found.token_ids, found.totals, found.stopped)
    )
    chosen = ops.logical_and(totals > -float("inf"), ops.logical_not(stopped))
    chosen = ops.logical_and(chosen, ops.logical_not(done)[:, None])
    hits = ops.logical_and(token_ids[..., None] == ops.arange(size), chosen[..., None])
    return ops.sum(ops.cast(hits, "float32"), axis=1)
