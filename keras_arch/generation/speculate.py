"""The loop of speculative decoding: a small model drafts, the model itself checks."""

import dataclasses
from typing import Any, NamedTuple

from keras import ops

from keras_arch.backend import write_slots
from keras_arch.generation.acceptance import accept, draw, insert
from keras_arch.generation.candidates import Past
from keras_arch.generation.random import row_uniforms
from keras_arch.generation.states import rewind


class Rows(NamedTuple):
    """What was generated so far.

    Attributes:
        token_ids: int32 `[B, P + N + K]`: prompt, generated tokens, drafts, rest.
        log_probabilities: float32 `[B, N]`, of the generated tokens.
        produced: int32 `[B]`, tokens generated.
        live: bool `[B]`, rows that have not ended.
        rounds: int32 `[B]`, rounds of drafting and checking.
        accepted: int32 `[B]`, drafted tokens that were accepted.
    """

    token_ids: Any
    log_probabilities: Any
    produced: Any
    live: Any
    rounds: Any
    accepted: Any


@dataclasses.dataclass(frozen=True)
class Speculation:
    """Rounds of drafts and checks.

    In a round the draft model proposes K tokens, one by one, each drawn from its own filtered
    distribution q. The model reads all of them in one pass, which gives its distributions p. From
    the first to the last, a drafted token x is accepted with the probability min(1, p(x) / q(x)).
    In place of the first that is rejected comes a draw from max(0, p - q), normalised; if all are
    accepted, one more is drawn from p. So every token is distributed as p; a greedy sampler has all
    probability on one token. Both models then forget the rejected ones.
    Source: Leviathan et al. 2023, algorithm 1; Chen et al. 2023, algorithm 2.

    A loop for `backend.compile_loop`, after prompts that are padded on the left.

    Attributes:
        stepper: The `Stepper` of the model.
        draft: The `Stepper` of the draft model.
        buffer: N, columns of the results.
        drafted: K.
        size: V, of both vocabularies.
        sampler: A `Greedy` or `Sample`.
    """

    stepper: Any
    draft: Any
    buffer: int
    drafted: int
    size: int
    sampler: Any

    @property
    def variables(self):
        """The Keras variables that the loop reads."""
        return self.stepper.variables + self.draft.variables

    def begin(self, token_ids, valid, limit, stop_ids, context, seed):
        """Reads the prompts.

        Args:
            token_ids: int32 `[B, P]`, P at least 2; and so all as in `Decode.begin`.
            valid: bool `[B, P]`.
            limit: int32 scalar.
            stop_ids: int32 `[any]`.
            context: Dict of tensors for the model's context inputs, among them the draft's.
            seed: int32 `[2]`.

        Returns:
            The state of the loop: the number of rounds so far; the `Rows`; what the loop only
            reads; and the states of both steppers.
        """
        count = ops.shape(token_ids)[0]
        zeros = ops.zeros((count,), "int32")
        rows = Rows(
            token_ids=ops.pad(token_ids, ((0, 0), (0, self.buffer + self.drafted))),
            log_probabilities=ops.zeros((count, self.buffer), "float32"),
            produced=zeros,
            live=ops.ones_like(valid[:, 0]),
            rounds=zeros,
            accepted=zeros,
        )
        given = [{name: context[name] for name in s.context_inputs} for s in self._steppers]
        states = tuple(
            self._read_prompts(stepper, token_ids, valid, context)
            for stepper, context in zip(self._steppers, given, strict=True)
        )
        request = {"valid": valid, "limit": limit, "stop_ids": stop_ids, "seed": seed}
        return ops.zeros((), "int32"), rows, request, states

    @property
    def _steppers(self):
        return self.stepper, self.draft

    def _read_prompts(self, stepper, token_ids, valid, context):
        """Returns the state after all tokens of the prompts but the last."""
        count, length = ops.shape(token_ids)
        # A round moves the cursor by the tokens that the luckiest row keeps.
        slots = length + self.drafted + self.buffer * min(count, self.drafted + 1)
        state = stepper.start(count, slots, context)
        return stepper.step(token_ids[:, :-1], valid[:, :-1], state)[1]

    def running(self, i, rows, request, states):
        """Returns whether there are tokens to generate."""
        return ops.any(rows.live)

    def body(self, i, rows, request, states):
        """Drafts K tokens, checks them and keeps those that are accepted, and one more."""
        numbers = self.drafted + 1
        steps = i * 2 * numbers + ops.arange(2 * numbers, dtype="int32")
        uniforms = row_uniforms(request["seed"], ops.shape(rows.live)[0], steps[:, None])
        # The last token up to the limit needs no draft.
        usable = ops.minimum(self.drafted, request["limit"] - rows.produced - 1)
        place = ops.arange(numbers, dtype="int32")
        valid = ops.logical_and(rows.live[:, None], place <= usable[:, None])

        drafts = self._propose(rows, request, valid, uniforms[:numbers], states[1])
        token_ids, q, draft_state = drafts
        rows = rows._replace(token_ids=token_ids)
        tokens = _newest(rows, request, 0, numbers)
        logits, state = self.stepper.step(tokens, valid, states[0])
        p = self._probabilities(rows, request, logits, 0)
        accepted, final = accept(p, q, tokens[:, 1:], usable, uniforms[numbers:])
        rows = self._append(rows, request, logits, tokens[:, 1:], accepted, final)
        kept = ops.logical_and(valid, place <= accepted[:, None])
        pairs = zip(self._steppers, (state, draft_state), strict=True)
        return i + 1, rows, request, tuple(rewind(*pair, valid, kept) for pair in pairs)

    def finish(self, i, rows, request, states):
        """Returns `(token_ids, valid, log_probabilities, accepted)`.

        The first three are `[B, N]`; after a row's end they hold 0, False and 0. The last is the
        mean number of drafted tokens accepted in a round, float32.
        """
        valid = ops.arange(self.buffer, dtype="int32") < rows.produced[:, None]
        length = ops.shape(request["valid"])[1]
        token_ids = ops.where(valid, rows.token_ids[:, length : length + self.buffer], 0)
        accepted, rounds = (ops.cast(ops.sum(x), "float32") for x in (rows.accepted, rows.rounds))
        return token_ids, valid, rows.log_probabilities, accepted / ops.maximum(rounds, 1.0)

    def _propose(self, rows, request, valid, uniforms, state):
        """Drafts K + 1 tokens, one by one.

        The last one is for nobody: it comes of reading the one before, which may be accepted.

        Returns:
            `token_ids` with the drafts, their distributions `[B, K + 1, V]` and the draft model's
            state.
        """

        def propose(j, carry):
            token_ids, distributions, state = carry
            drafted = rows._replace(token_ids=token_ids)
            column = ops.take(valid, j, axis=1)[:, None]
            logits, state = self.draft.step(_newest(drafted, request, j, 1), column, state)
            q = self._probabilities(drafted, request, logits, j)
            token = draw(q[:, 0], ops.take(uniforms, j, axis=0))
            begin = ops.shape(request["valid"])[1] + rows.produced + j
            token_ids = insert(token_ids, token[:, None], begin, ops.ones_like(token))
            return token_ids, write_slots(distributions, q, j, axis=1), state

        shape = (*ops.shape(valid), self.size)
        start = rows.token_ids, ops.zeros(shape, "float32"), state
        return ops.fori_loop(0, self.drafted + 1, propose, start)

    def _probabilities(self, rows, request, logits, first):
        """Returns the filtered distributions, float32 `[B, M, V]`.

        Args:
            rows: The `Rows`.
            request: What the loop only reads.
            logits: `[B, M, V]`, of the tokens `first`, `first` + 1, ... after those produced.
            first: int32 scalar.
        """
        count, columns, size = ops.shape(logits)
        steps = rows.produced[:, None] + (first + ops.arange(columns, dtype="int32"))
        steps = ops.reshape(steps, (-1,))
        length = ops.shape(request["valid"])[1]
        slot = ops.arange(rows.token_ids.shape[1], dtype="int32")
        pads = length - ops.sum(ops.cast(request["valid"], "int32"), axis=1)
        pads = ops.repeat(pads, columns, axis=0)[:, None]
        valid = ops.logical_and(slot >= pads, slot < length + steps[:, None])
        token_ids = ops.repeat(rows.token_ids, columns, axis=0)
        past = Past(steps, request["stop_ids"], token_ids, valid)
        logits = ops.reshape(ops.cast(logits, "float32"), (count * columns, size))
        return ops.reshape(self.sampler.probabilities(logits, past), (count, columns, size))

    def _append(self, rows, request, logits, tokens, accepted, final):
        """Returns the rows with the accepted tokens and the final one, up to a stop id."""
        place = ops.arange(self.drafted + 1, dtype="int32")
        tokens = ops.pad(tokens, ((0, 0), (0, 1)))
        tokens = ops.where(place == accepted[:, None], final[:, None], tokens)
        stops = ops.any(tokens[..., None] == request["stop_ids"], axis=-1)
        stops = ops.logical_and(stops, place <= accepted[:, None])
        count = 1 + ops.min(ops.where(stops, place, accepted[:, None]), axis=1)
        count = ops.where(rows.live, count, 0)
        log_probabilities = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
        log_probabilities = ops.take_along_axis(log_probabilities, tokens[..., None], axis=-1)
        begin = ops.shape(request["valid"])[1] + rows.produced
        produced = rows.produced + count
        ended = ops.logical_or(ops.any(stops, axis=1), produced >= request["limit"])
        return Rows(
            token_ids=insert(rows.token_ids, tokens, begin, count),
            log_probabilities=insert(
                rows.log_probabilities, log_probabilities[..., 0], rows.produced, count
            ),
            produced=produced,
            live=ops.logical_and(rows.live, ops.logical_not(ended)),
            rounds=rows.rounds + ops.cast(rows.live, "int32"),
            accepted=rows.accepted + ops.minimum(accepted, count),
        )


def _newest(rows, request, first, count):
    """Returns int32 `[B, count]`: a row's last token and the drafts after it, from `first`."""
    begin = ops.shape(request["valid"])[1] - 1 + rows.produced + first
    places = begin[:, None] + ops.arange(count, dtype="int32")
    return ops.take_along_axis(rows.token_ids, places, axis=1)
