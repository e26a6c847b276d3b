"""The loop of speculative decoding: a small model drafts, the model itself checks."""

import dataclasses
from typing import Any, NamedTuple

from keras import ops

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
    """Generates after prompts that are padded on the left.

    In a round the draft model proposes K tokens, one by one, each drawn from its own filtered
    distribution q. The model reads all of them in one pass, which gives its distributions p. From
    the first to the last, a drafted token x is accepted with the probability min(1, p(x) / q(x)).
    In place of the first that is rejected comes a draw from max(0, p - q), normalised; if all are
    accepted, one more is drawn from p. So every token is distributed as p; a greedy sampler has all
    probability on one token. Both models then forget the rejected ones.
    Source: Leviathan et al. 2023, algorithm 1; Chen et al. 2023, algorithm 2.

    Attributes:
        stepper: The `Stepper` of the model.
        draft: The `Stepper` of the draft model.
        token_ids: int32 `[B, P]`, the prompts; B, P static, P at least 2.
        valid: bool `[B, P]`; the last column is all True.
        buffer: Python int N, columns of the results.
        limit: int32 scalar, at most N: the number of tokens to generate.
        drafted: Python int K.
        size: Python int V, of both vocabularies.
        sampler: A `Greedy` or `Sample`.
        seed: int32 `[2]`.
        stop_ids: int32 `[any]`; a row ends with the first of them, itself included.
    """

    stepper: Any
    draft: Any
    token_ids: Any
    valid: Any
    buffer: int
    limit: Any
    drafted: int
    size: int
    sampler: Any
    seed: Any
    stop_ids: Any

    def run(self):
        """Returns `(token_ids, valid, log_probabilities, rounds, accepted)`; see `Rows`.

        The first three are `[B, N]`; after a row's end they hold 0, False and 0.
        """
        count, length = self.token_ids.shape
        zeros = ops.zeros((count,), "int32")
        rows = Rows(
            token_ids=ops.pad(self.token_ids, ((0, 0), (0, self.buffer + self.drafted))),
            log_probabilities=ops.zeros((count, self.buffer), "float32"),
            produced=zeros,
            live=ops.ones_like(self.valid[:, 0]),
            rounds=zeros,
            accepted=zeros,
        )
        states = tuple(self._read_prompts(stepper) for stepper in (self.stepper, self.draft))
        start = (ops.zeros((), "int32"), rows, states)
        _, rows, _ = ops.while_loop(lambda i, rows, states: ops.any(rows.live), self._round, start)
        valid = ops.arange(self.buffer) < rows.produced[:, None]
        token_ids = ops.where(valid, rows.token_ids[:, length : length + self.buffer], 0)
        return token_ids, valid, rows.log_probabilities, rows.rounds, rows.accepted

    def _read_prompts(self, stepper):
        """Returns the state after all tokens of the prompts but the last."""
        count, length = self.token_ids.shape
        # A round moves the cursor by the tokens that the luckiest row keeps.
        slots = length + self.drafted + self.buffer * min(count, self.drafted + 1)
        state = stepper.start(count, slots)
        return stepper.step(self.token_ids[:, :-1], self.valid[:, :-1], state)[1]

    def _round(self, i, rows, states):
        numbers = self.drafted + 1
        steps = i * 2 * numbers + ops.arange(2 * numbers, dtype="int32")
        uniforms = row_uniforms(self.seed, self.token_ids.shape[0], steps[:, None])
        # The last token up to the limit needs no draft.
        usable = ops.minimum(self.drafted, self.limit - rows.produced - 1)
        place = ops.arange(numbers, dtype="int32")
        valid = ops.logical_and(rows.live[:, None], place <= usable[:, None])

        token_ids, q, draft_state = self._propose(rows, valid, uniforms[:numbers], states[1])
        rows = rows._replace(token_ids=token_ids)
        tokens = self._newest(rows, 0, numbers)
        logits, state = self.stepper.step(tokens, valid, states[0])
        p = self._probabilities(rows, logits, 0)
        accepted, final = accept(p, q, tokens[:, 1:], usable, uniforms[numbers:])
        rows = self._append(rows, logits, tokens[:, 1:], accepted, final)
        kept = ops.logical_and(valid, place <= accepted[:, None])
        pairs = ((self.stepper, state), (self.draft, draft_state))
        return i + 1, rows, tuple(rewind(*pair, valid, kept) for pair in pairs)

    def _propose(self, rows, valid, uniforms, state):
        """Drafts K + 1 tokens, one by one.

        The last one is for nobody: it comes of reading the one before, which may be accepted.

        Returns:
            `token_ids` with the drafts, their distributions `[B, K + 1, V]` and the draft model's
            state.
        """

        def propose(j, token_ids, distributions, state):
            drafted = rows._replace(token_ids=token_ids)
            column = ops.take(valid, j[None], axis=1)
            logits, state = self.draft.step(self._newest(drafted, j, 1), column, state)
            q = self._probabilities(drafted, logits, j)
            token = draw(q[:, 0], uniforms[j])
            begin = self.token_ids.shape[1] + rows.produced + j
            token_ids = insert(token_ids, token[:, None], begin, ops.ones_like(token))
            return j + 1, token_ids, ops.slice_update(distributions, (0, j, 0), q), state

        shape = (*valid.shape, self.size)
        start = ops.zeros((), "int32"), rows.token_ids, ops.zeros(shape, "float32"), state
        return ops.while_loop(lambda j, *_: j <= self.drafted, propose, start)[1:]

    def _newest(self, rows, first, count):
        """Returns int32 `[B, count]`: a row's last token and the drafts after it, from `first`."""
        begin = self.token_ids.shape[1] - 1 + rows.produced + first
        places = begin[:, None] + ops.arange(count, dtype="int32")
        return ops.take_along_axis(rows.token_ids, places, axis=1)

    def _probabilities(self, rows, logits, first):
        """Returns the filtered distributions, float32 `[B, M, V]`.

        Args:
            rows: The `Rows`.
            logits: `[B, M, V]`, of the tokens `first`, `first` + 1, ... after those produced.
            first: int32 scalar.
        """
        count, columns, size = ops.shape(logits)
        steps = rows.produced[:, None] + (first + ops.arange(columns, dtype="int32"))
        steps = ops.reshape(steps, (-1,))
        length = self.token_ids.shape[1]
        slot = ops.arange(rows.token_ids.shape[1], dtype="int32")
        pads = length - ops.sum(ops.cast(self.valid, "int32"), axis=1)
        pads = ops.repeat(pads, columns, axis=0)[:, None]
        valid = ops.logical_and(slot >= pads, slot < length + steps[:, None])
        past = Past(steps, self.stop_ids, ops.repeat(rows.token_ids, columns, axis=0), valid)
        logits = ops.reshape(ops.cast(logits, "float32"), (count * columns, size))
        return ops.reshape(self.sampler.probabilities(logits, past), (count, columns, size))

    def _append(self, rows, logits, tokens, accepted, final):
        """Returns the rows with the accepted tokens and the final one, up to a stop id."""
        place = ops.arange(self.drafted + 1, dtype="int32")
        tokens = ops.pad(tokens, ((0, 0), (0, 1)))
        tokens = ops.where(place == accepted[:, None], final[:, None], tokens)
        stops = ops.any(tokens[..., None] == self.stop_ids, axis=-1)
        stops = ops.logical_and(stops, place <= accepted[:, None])
        count = 1 + ops.min(ops.where(stops, place, accepted[:, None]), axis=1)
        count = ops.where(rows.live, count, 0)
        log_probabilities = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
        log_probabilities = ops.take_along_axis(log_probabilities, tokens[..., None], axis=-1)
        begin, produced = self.token_ids.shape[1] + rows.produced, rows.produced + count
        ended = ops.logical_or(ops.any(stops, axis=1), produced >= self.limit)
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


def accept(p, q, tokens, usable, uniforms):
    """Decides which drafted tokens stand and draws the one after them.

    Args:
        p: float32 `[B, K + 1, V]`, the model's distributions.
        q: float32 `[B, K + 1, V]`, those that the tokens were drawn from, and any.
        tokens: int32 `[B, K]`, the drafted tokens.
        usable: int32 `[B]`, how many of them may stand.
        uniforms: float32 `[K + 1, B]`, random in [0, 1).

    Returns:
        `(accepted, final)`, int32 `[B]`: how many stand, and the token that follows.
    """
    place = ops.arange(p.shape[1], dtype="int32")
    used = place < usable[:, None]
    tokens = ops.pad(tokens, ((0, 0), (0, 1)))
    chances = [ops.take_along_axis(x, tokens[..., None], axis=-1)[..., 0] for x in (p, q)]
    stands = ops.transpose(uniforms) * chances[1] < chances[0]
    # Past the drafts in use nothing was drawn from q, and the draw is from p.
    stands, q = ops.logical_and(stands, used), ops.where(used[..., None], q, 0.0)
    accepted = ops.min(ops.where(stands, tokens.shape[1], place), axis=1)
    at = ops.one_hot(accepted, tokens.shape[1], dtype=p.dtype)[..., None]
    p, q = ops.sum(p * at, axis=1), ops.sum(q * at, axis=1)
    rest = ops.maximum(p - q, 0.0)
    # Equal up to rounding, the two may leave nothing.
    some = ops.sum(rest, axis=-1, keepdims=True) > 0
    return accepted, draw(ops.where(some, rest, p), uniforms[-1])


def draw(weights, uniform):
    """Returns int32 `[B]`, drawn in proportion to weights `[B, V]` by numbers `[B]` in [0, 1)."""
    cumulative = ops.cumsum(weights, axis=-1)
    threshold = uniform[:, None] * cumulative[:, -1:]
    return ops.sum(ops.cast(cumulative <= threshold, "int32"), axis=-1)


def insert(x, values, begin, count):
    """Puts the first `count` `[B]` of values `[B, M]` into `x` `[B, L]`, from `begin` `[B]` on."""
    place = ops.arange(x.shape[1], dtype="int32") - begin[:, None]
    inserted = ops.logical_and(place >= 0, place < count[:, None])
    place = ops.clip(place, 0, values.shape[1] - 1)
    return ops.where(inserted, ops.take_along_axis(values, place, axis=1), x)
