"""The loop of beam search: one program from prompts to hypotheses."""

import dataclasses
from typing import Any

from keras import ops

from keras_arch.generation.beam_coverage import coverage_name, log_coverage
from keras_arch.generation.beam_entries import places_among_all, take_entries
from keras_arch.generation.beam_extensions import extend, extend_groups
from keras_arch.generation.beam_hypotheses import Finished, Hypotheses, no_hypotheses
from keras_arch.generation.states import take_rows


@dataclasses.dataclass(frozen=True)
class BeamDecode:
    """Searches after prompts that are padded on the left: a loop for `backend.compile_loop`.

    All tokens of the prompt but the last are read in one pass, once for each row; then one token of
    each beam at a time. To all but the model, each group of a row's beams is a row by itself: there
    are R = B * G, and W is the width of a group. The loop ends when all of them are done.

    Attributes:
        stepper: A `Stepper`.
        buffer: N, columns of the results.
        search: A `BeamSearch`.
    """

    stepper: Any
    buffer: int
    search: Any

    @property
    def variables(self):
        """The Keras variables that the loop reads."""
        return self.stepper.variables

    def begin(self, token_ids, valid, limit, stop_ids, context):
        """Reads the prompts.

        Args:
            token_ids: int32 `[B, P]`, P at least 2.
            valid: bool `[B, P]`; the last column is all True.
            limit: int32 scalar, at most N: the number of tokens to generate.
            stop_ids: int32 `[any]`; a hypothesis ends with the first of them, itself included.
            context: Dict of tensors for the context inputs.

        Returns:
            The state of the loop: the number of tokens so far; the last token of each beam, int32
            `[R, W]`; the beams, `Hypotheses`; the `Finished`; what the loop only reads; and the
            state of the stepper.
        """
        (rows, length), width = ops.shape(token_ids), self.search.group_width
        state = self.stepper.start(rows, length + self.buffer, context)
        _, state = self.stepper.step(token_ids[:, :-1], valid[:, :-1], state)
        # PyTorch's traces do not know what shape `ops.repeat` gives.
        row = ops.arange(rows * self.search.width, dtype="int32") // self.search.width
        state = take_rows(state, row, rows)
        last = token_ids[:, -1:] + ops.zeros((self.search.width,), "int32")
        last = ops.reshape(last, (-1, width))
        none = no_hypotheses(last, self.buffer)
        done = ops.zeros_like(last[:, 0], dtype="bool")
        finished = Finished(none, ops.zeros_like(last), none.totals, done)
        # One beam to start from is enough: they are all alike.
        totals = ops.where(ops.arange(width) == 0, ops.zeros_like(none.totals), none.totals)
        request = {"limit": limit, "stop_ids": stop_ids}
        beams = none._replace(totals=totals)
        return ops.zeros((), "int32"), last, beams, finished, request, state

    def running(self, i, last, beams, finished, request, state):
        """Returns whether there are tokens to generate."""
        return ops.logical_and(i < request["limit"], ops.logical_not(ops.all(finished.done)))

    def body(self, i, last, beams, finished, request, state):
        """Reads the last token of each beam, finishes hypotheses and chooses the next beams."""
        token = ops.reshape(last, (-1, 1))
        logits, state = self.stepper.step(token, ops.ones_like(token, dtype="bool"), state)
        logits = ops.cast(logits[:, -1], "float32")
        found = self._extend(logits, beams.totals, finished.done, request["stop_ids"])
        beams = beams.extend(found, i)
        ended = self._ended(beams, found.stopped, i + 1, request["limit"])
        scores = self.search.score(beams.totals, i + 1, self._log_coverage(found.beams, state))
        finished = self._finish(beams, ended, scores, i + 1, finished)
        beams = beams._replace(totals=ops.where(found.stopped, -float("inf"), beams.totals))
        beams, last = beams.take(found.next), take_entries(found.token_ids, found.next)
        finished = finished._replace(done=self._done(beams, i + 1, finished, request["limit"]))
        origins = places_among_all(take_entries(found.beams, found.next), self.search.group_width)
        moved = take_rows(state, ops.reshape(origins, (-1,)), ops.shape(token)[0])
        # To all beams of a row, what comes from the context is the same.
        state = {**moved, "context": state["context"]}
        return i + 1, last, beams, finished, request, state

    def finish(self, i, last, beams, finished, request, state):
        """Returns `(token_ids, valid, log_probabilities, totals, scores)` of the n best.

        The first three are int32, bool and float32 `[B, n, N]`, with 0, False and 0 after a
        hypothesis's end; the last two are float32 `[B, n]`, minus infinity where a row has fewer.
        """
        # Those of a row's groups side by side.
        parts = *finished.hypotheses, finished.counts, finished.scores
        *hypotheses, counts, scores = (
            ops.reshape(x, (-1, self.search.width, *x.shape[2:])) for x in parts
        )
        finished = Finished(Hypotheses(*hypotheses), counts, scores, None)
        return finished.best(self.search.n_best)

    def _extend(self, logits, totals, done, stop_ids):
        groups, width, size = self.search.groups, self.search.group_width, logits.shape[-1]
        if groups == 1:
            return extend(ops.reshape(logits, (-1, width, size)), totals, stop_ids)
        logits = ops.reshape(logits, (-1, groups, width, size))
        totals, done = ops.reshape(totals, (-1, groups, width)), ops.reshape(done, (-1, groups))
        return extend_groups(logits, totals, stop_ids, done, self.search.diversity)

    def _ended(self, beams, stopped, count, limit):
        """Returns which hypotheses of `count` tokens are at their end, bool `[R, C]`."""
        ended = ops.logical_or(stopped, count >= limit)
        return ops.logical_and(ended, beams.totals > -float("inf"))

    def _log_coverage(self, origins, state):
        """Returns the coverage of what comes of beams `[R, C]`; 0 if it has no price."""
        if not self.search.coverage_penalty:
            return 0.0
        state = state["layers"][coverage_name(self.stepper)]
        coverage = log_coverage(state, self.search.width)
        return take_entries(ops.reshape(coverage, (-1, self.search.group_width)), origins)

    def _finish(self, beams, ended, scores, count, finished):
        """Returns the `Finished` with those of the first W beams that ended with `count` tokens."""
        scores = ops.where(ended, scores, -float("inf"))
        width = self.search.group_width
        first = Hypotheses(*(x[:, :width] for x in beams))
        return finished.add(first, count, scores[:, :width])

    def _done(self, beams, count, finished, limit):
        """Returns which rows take no more finished hypotheses, bool `[R]`."""
        worst = finished.scores[:, -1]
        if self.search.stops_when_full:
            return ops.logical_or(finished.done, worst > -float("inf"))
        best = self.search.attainable(ops.max(beams.totals, axis=1), count, limit)
        return ops.logical_or(finished.done, best <= worst)
