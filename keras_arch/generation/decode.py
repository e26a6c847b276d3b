"""The decode loop: one program from prompt to tokens, on every backend and inside exports."""

import dataclasses
from typing import Any

from keras import ops

from keras_arch.backend import write_slots
from keras_arch.generation.candidates import Past
from keras_arch.generation.random import row_uniforms


@dataclasses.dataclass(frozen=True)
class Decode:
    """Generates after prompts that are padded on the left: a loop for `backend.compile_loop`.

    All tokens of the prompt but the last are read in one pass; then one token at a time is read,
    and one chosen. The loop ends when all rows have stopped.

    Attributes:
        stepper: A `Stepper`.
        buffer: N, columns of the results.
        sampler: A `Greedy` or `Sample`.
        return_logprobs: Whether to compute log-probabilities.
    """

    stepper: Any
    buffer: int
    sampler: Any
    return_logprobs: bool = False

    @property
    def variables(self):
        """The Keras variables that the loop reads."""
        return self.stepper.variables

    def begin(self, token_ids, valid, limit, stop_ids, context, seed):
        """Reads the prompts.

        Args:
            token_ids: int32 `[B, P]`, P at least 2.
            valid: bool `[B, P]`; the last column is all True.
            limit: int32 scalar, at most N: the number of tokens to generate.
            stop_ids: int32 `[any]`; a row ends with the first of them, itself included.
            context: Dict of tensors for the context inputs.
            seed: int32 `[2]`.

        Returns:
            The state of the loop: the number of tokens so far; the last token of each row, int32
            `[B]`; which rows go on, bool `[B]`; prompts and results, `[B, P + N]`; what the loop
            only reads; and the state of the stepper.
        """
        rows, length = ops.shape(token_ids)
        state = self.stepper.start(rows, length + self.buffer, context)
        # Nobody reads the output, so no compiled program computes the head on the prompt.
        _, state = self.stepper.step(token_ids[:, :-1], valid[:, :-1], state)
        request = {
            "limit": limit,
            "stop_ids": stop_ids,
            "uniforms": row_uniforms(seed, rows, ops.arange(self.buffer, dtype="int32")[:, None]),
        }
        # Prompt and results in one, so that filters find all tokens so far.
        padding = ((0, 0), (0, self.buffer))
        results = {"token_ids": ops.pad(token_ids, padding), "valid": ops.pad(valid, padding)}
        if self.return_logprobs:
            zeros = ops.zeros((rows, length + self.buffer), "float32")
            results["log_probabilities"] = zeros
        live = ops.ones_like(valid[:, 0])
        return ops.zeros((), "int32"), token_ids[:, -1], live, results, request, state

    def running(self, i, token, live, results, request, state):
        """Returns whether there are tokens to generate."""
        return ops.logical_and(i < request["limit"], ops.any(live))

    def body(self, i, token, live, results, request, state):
        """Reads the last token of each row and chooses the next."""
        logits, state = self.stepper.step(token[:, None], live[:, None], state)
        logits = ops.cast(logits[:, -1], "float32")
        past = Past(i, request["stop_ids"], results["token_ids"], results["valid"])
        uniforms = ops.take(request["uniforms"], i, axis=0)
        token = self.sampler.choose(logits, uniforms, past)
        chosen = {"token_ids": ops.where(live, token, 0), "valid": live}
        if self.return_logprobs:
            chosen["log_probabilities"] = ops.where(live, _log_probability(logits, token), 0.0)
        slot = ops.shape(results["valid"])[1] - self.buffer + i
        results = {
            name: write_slots(results[name], column[:, None], slot, axis=1)
            for name, column in chosen.items()
        }
        stopped = ops.any(token[:, None] == request["stop_ids"], axis=-1)
        live = ops.logical_and(live, ops.logical_not(stopped))
        return i + 1, token, live, results, request, state

    def finish(self, i, token, live, results, request, state):
        """Returns `(token_ids, valid, log_probabilities)`, int32, bool, float32 `[B, N]`.

        After a row's end they hold 0, False and 0. Log-probabilities are the model's own, before
        the sampler; None unless `return_logprobs`.
        """
        begin = ops.shape(results["valid"])[1] - self.buffer
        results = {name: result[:, begin:] for name, result in results.items()}
        return results["token_ids"], results["valid"], results.get("log_probabilities")


def _log_probability(logits, token):
    """Returns float32 `[B]`: log-softmax of logits `[B, V]` at token `[B]`."""
    chosen = ops.take_along_axis(logits, token[:, None], axis=-1)[:, 0]
    return chosen - ops.logsumexp(logits, axis=-1)
