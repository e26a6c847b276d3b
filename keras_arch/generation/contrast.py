"""The loop of contrastive search."""

import dataclasses
from typing import Any

from keras import ops

from keras_arch.backend import top_places, write_slots
from keras_arch.generation.states import take_rows


@dataclasses.dataclass(frozen=True)
class Contrast:
    """Contrastive search after prompts padded on the left: a loop for `backend.compile_loop`.

    Attributes:
        stepper: A `Stepper`.
        buffer: N, columns of the results.
        k: Candidates for each token, at most V.
    """

    stepper: Any
    buffer: int
    k: int

    @property
    def variables(self):
        """The Keras variables that the loop reads."""
        return self.stepper.variables

    def begin(self, token_ids, valid, limit, stop_ids, context, alpha):
        """Reads the prompts.

        Args:
            token_ids: int32 `[B, P]`, P at least 2; and so all as in `Decode.begin`.
            valid: bool `[B, P]`.
            limit: int32 scalar.
            stop_ids: int32 `[any]`.
            context: Dict of tensors for the context inputs.
            alpha: float32 scalar, weight of the likeness.

        Returns:
            The state of the loop: the number of tokens so far; which rows go on, bool `[B]`;
            results, `[B, N]` each; what the loop only reads; the directions of all tokens so far,
            `[B, P + N, D]`, and which of them are tokens; the last token's hidden state,
            `[B, 1, D]`; and the state of the stepper.
        """
        stepper, (rows, length) = self.stepper, ops.shape(token_ids)
        state = stepper.start(rows, length + self.buffer, context)
        read, state = stepper.hidden(token_ids[:, :-1], valid[:, :-1], state)
        last, state = stepper.hidden(token_ids[:, -1:], valid[:, -1:], state)
        directions = ops.concatenate([_direction(read), _direction(last)], axis=1)
        padding = ((0, 0), (0, self.buffer))
        past = ops.pad(directions, (*padding, (0, 0))), ops.pad(valid, padding)
        results = tuple(ops.zeros((rows, self.buffer), t) for t in ("int32", "bool", "float32"))
        request = {"limit": limit, "stop_ids": stop_ids, "alpha": alpha}
        live = ops.ones_like(valid[:, 0])
        return ops.zeros((), "int32"), live, results, request, past, last, state

    def running(self, i, live, results, request, past, hidden, state):
        """Returns whether there are tokens to generate."""
        return ops.logical_and(i < request["limit"], ops.any(live))

    def body(self, i, live, results, request, past, hidden, state):
        """Chooses the next token of each row among k that are read."""
        logits = ops.cast(self.stepper.head(hidden)[:, -1], "float32")
        scores = ops.log_softmax(logits, axis=-1)
        candidates = top_places(scores, self.k)
        log_probabilities = ops.take_along_axis(scores, candidates, axis=-1)
        hidden, state = self._read(candidates, live, state)
        alpha, likeness = request["alpha"], self._likeness(hidden, past)
        scores = (1.0 - alpha) * ops.exp(log_probabilities) - alpha * likeness
        best = ops.cast(ops.argmax(scores, axis=-1), "int32")[:, None]
        token = ops.take_along_axis(candidates, best, axis=-1)
        alive = live[:, None]
        log_probability = ops.take_along_axis(log_probabilities, best, axis=-1)
        chosen = ops.where(alive, token, 0), alive, ops.where(alive, log_probability, 0.0)
        results = _write(results, chosen, i)
        rows = ops.shape(live)[0]
        row = ops.arange(rows, dtype="int32") * self.k + best[:, 0]
        hidden, state = ops.take(hidden, row, axis=0), take_rows(state, row, rows * self.k)
        slot = ops.shape(past[1])[1] - self.buffer + i
        past = _write(past, (_direction(hidden), alive), slot)
        stopped = ops.any(token == request["stop_ids"], axis=-1)
        live = ops.logical_and(live, ops.logical_not(stopped))
        return i + 1, live, results, request, past, hidden, state

    def finish(self, i, live, results, request, past, hidden, state):
        """Returns `(token_ids, valid, log_probabilities)`, int32, bool, float32 `[B, N]`.

        After a row's end they hold 0, False and 0.
        """
        return results

    def _read(self, candidates, live, state):
        """Reads each of the candidates after its row.

        Returns:
            Hidden states, float `[B * k, 1, D]`, and the state of that batch.
        """
        rows = ops.shape(live)[0]
        row = ops.repeat(ops.arange(rows, dtype="int32"), self.k, axis=0)
        valid = ops.take(live, row, axis=0)[:, None]
        state = take_rows(state, row, rows)
        return self.stepper.hidden(ops.reshape(candidates, (-1, 1)), valid, state)

    def _likeness(self, hidden, past):
        """Returns each candidate's largest cosine with a token before it, float32 `[B, k]`."""
        directions, known = past
        shape = (ops.shape(directions)[0], self.k, directions.shape[-1])
        candidates = ops.reshape(_direction(hidden), shape)
        cosines = ops.matmul(candidates, ops.transpose(directions, (0, 2, 1)))
        return ops.max(ops.where(known[:, None], cosines, -1.0), axis=-1)


def _write(arrays, columns, slot):
    """Writes a column `[B, 1, ...]` into each of the arrays `[B, L, ...]` at a slot."""
    pairs = zip(arrays, columns, strict=True)
    return tuple(write_slots(x, column, slot, axis=1) for x, column in pairs)


def _direction(hidden):
    """Returns hidden states scaled to length 1, float32."""
    hidden = ops.cast(hidden, "float32")
    square = ops.sum(ops.square(hidden), axis=-1, keepdims=True)
    return hidden * ops.rsqrt(ops.maximum(square, 1e-30))
