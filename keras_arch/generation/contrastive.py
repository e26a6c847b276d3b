"""Contrastive search: probable tokens that are not like what stands there already."""

import dataclasses
import weakref
from typing import Any

import numpy as np
from keras import ops

from keras_arch.checks import check_positive
from keras_arch.generation.candidates import top_places
from keras_arch.generation.generate import Generation, bucket, decoded_texts
from keras_arch.generation.programs import Programs
from keras_arch.generation.prompts import check_request, check_rows, pad_left, prompt_rows
from keras_arch.generation.samplers import Greedy
from keras_arch.generation.states import take_rows
from keras_arch.generation.stepper import Stepper


@dataclasses.dataclass(frozen=True)
class Contrast:
    """Contrastive search after prompts that are padded on the left.

    Attributes:
        stepper: A `Stepper`.
        token_ids: int32 `[B, P]`, P at least 2; B and P static.
        valid: bool `[B, P]`; the last column is all True.
        buffer: Python int N, columns of the results.
        limit: int32 scalar, at most N: the number of tokens to generate.
        k: Python int, candidates for each token.
        alpha: float32 scalar, weight of the likeness.
        stop_ids: int32 `[any]`; a row ends with the first of them, itself included.
    """

    stepper: Any
    token_ids: Any
    valid: Any
    buffer: int
    limit: Any
    k: int
    alpha: Any
    stop_ids: Any

    def run(self):
        """Returns `(token_ids, valid, log_probabilities)`, `[B, N]` each.

        After a row's end they hold 0, False and 0.
        """
        stepper, (rows, length) = self.stepper, self.token_ids.shape
        state = stepper.start(rows, length + self.buffer)
        read, state = stepper.hidden(self.token_ids[:, :-1], self.valid[:, :-1], state)
        last, state = stepper.hidden(self.token_ids[:, -1:], self.valid[:, -1:], state)
        directions = ops.concatenate([_direction(read), _direction(last)], axis=1)
        padding = ((0, 0), (0, self.buffer))
        # Of all tokens so far, and which of them are tokens.
        memory = ops.pad(directions, (*padding, (0, 0))), ops.pad(self.valid, padding)
        results = tuple(ops.zeros((rows, self.buffer), t) for t in ("int32", "bool", "float32"))

        def running(i, live, *_):
            return ops.logical_and(i < self.limit, ops.any(live))

        start = ops.zeros((), "int32"), ops.ones_like(self.valid[:, 0]), results, memory
        return ops.while_loop(running, self._step, (*start, last, state))[2]

    def _step(self, i, live, results, memory, hidden, state):
        logits = ops.cast(self.stepper.head(hidden)[:, -1], "float32")
        scores = ops.log_softmax(logits, axis=-1)
        candidates = ops.cast(top_places(scores, self.k), "int32")
        log_probabilities = ops.take_along_axis(scores, candidates, axis=-1)
        hidden, state = self._read(candidates, live, state)
        likeness = self._likeness(hidden, memory)
        scores = (1.0 - self.alpha) * ops.exp(log_probabilities) - self.alpha * likeness
        best = ops.cast(ops.argmax(scores, axis=-1), "int32")[:, None]
        token = ops.take_along_axis(candidates, best, axis=-1)
        alive = live[:, None]
        log_probability = ops.take_along_axis(log_probabilities, best, axis=-1)
        chosen = ops.where(alive, token, 0), alive, ops.where(alive, log_probability, 0.0)
        results = tuple(
            ops.slice_update(x, (0, i), column) for x, column in zip(results, chosen, strict=True)
        )
        row = ops.arange(live.shape[0], dtype="int32") * self.k + best[:, 0]
        hidden, state = ops.take(hidden, row, axis=0), take_rows(state, row, live.shape[0] * self.k)
        slot = self.token_ids.shape[1] + i
        memory = (
            ops.slice_update(memory[0], (0, slot, 0), _direction(hidden)),
            ops.slice_update(memory[1], (0, slot), alive),
        )
        stopped = ops.any(token == self.stop_ids, axis=-1)
        live = ops.logical_and(live, ops.logical_not(stopped))
        return i + 1, live, results, memory, hidden, state

    def _read(self, candidates, live, state):
        """Reads each of the candidates after its row.

        Returns:
            Hidden states, float `[B * k, 1, D]`, and the state of that batch.
        """
        row = ops.repeat(ops.arange(live.shape[0], dtype="int32"), self.k, axis=0)
        valid = ops.take(live, row, axis=0)[:, None]
        state = take_rows(state, row, live.shape[0])
        return self.stepper.hidden(ops.reshape(candidates, (-1, 1)), valid, state)

    def _likeness(self, hidden, memory):
        """Returns each candidate's largest cosine with a token before it, float32 `[B, k]`."""
        directions, known = memory
        candidates = ops.reshape(_direction(hidden), (directions.shape[0], self.k, -1))
        cosines = ops.matmul(candidates, ops.transpose(directions, (0, 2, 1)))
        return ops.max(ops.where(known[:, None], cosines, -1.0), axis=-1)


def _direction(hidden):
    """Returns hidden states scaled to length 1, float32."""
    hidden = ops.cast(hidden, "float32")
    square = ops.sum(ops.square(hidden), axis=-1, keepdims=True)
    return hidden * ops.rsqrt(ops.maximum(square, 1e-30))


class ContrastiveSearch:
    """The programs of one model: one for each bucket of shapes.

    Args:
        model: A functional model; see `Stepper` for what it must be.
    """

    def __init__(self, model):
        self.stepper = Stepper(model)
        self.stepper.check_head()
        self.size = model.output.shape[-1]
        self.programs = Programs()

    def __call__(self, rows, max_new_tokens, k, alpha, stop_ids):
        """Returns `(token_ids, valid, log_probabilities)`, numpy `[B, max_new_tokens]`."""
        longest, limit = bucket(max(map(len, rows))), self.stepper.context_length
        slots = max(2, longest if limit is None else min(longest, limit))
        token_ids, valid = pad_left(rows, slots)
        buffer, k = bucket(max_new_tokens), min(k, self.size)

        def run(token_ids, valid, limit, alpha, stop_ids):
            return Contrast(self.stepper, token_ids, valid, buffer, limit, k, alpha, stop_ids).run()

        key = token_ids.shape, buffer, k, len(stop_ids)
        outputs = self.programs.get(key, run, self.stepper.variables)(
            token_ids,
            valid,
            np.int32(max_new_tokens),
            np.float32(alpha),
            np.asarray(stop_ids, "int32"),
        )
        return [ops.convert_to_numpy(output)[:, :max_new_tokens] for output in outputs]


# A cache that keeps nothing alive: an entry goes with its model.
_searches = weakref.WeakKeyDictionary()


def generate_contrastive(
    model,
    prompts,
    max_new_tokens,
    k=4,
    alpha=0.6,
    stop_ids=(),
    tokenizer=None,
    valid=None,
    bos_id=None,
    return_logprobs=False,
):
    """Generates by contrastive search: the same tokens at each call, less repetitive than greedy.

    Of the k most probable tokens it takes the one with the largest `(1 - alpha) * probability -
    alpha * likeness`. Likeness is the largest cosine between the token's hidden state, which the
    model's head would read, and those of all tokens before it, the prompt's included.
    Source: Su et al. 2022, section 3.2.

    Args:
        model: A functional `keras.Model` from `token_ids` and `valid` to logits `[B, T, V]`.
        prompts: As in `generate`; so are all arguments but `k` and `alpha`.
        max_new_tokens: Most tokens to generate for each prompt.
        k: Candidates for each token; 1 is greedy search.
        alpha: Weight of the likeness, in [0, 1]; 0 is greedy search.
        stop_ids: Ids that end a row.
        tokenizer: A tokenizer of `keras_arch.text`.
        valid: bool `[B, T]`, True = real token; pads may stand on either side.
        bos_id: What an empty prompt starts from; default the tokenizer's "begin" or "end" id.
        return_logprobs: Whether to return the tokens' log-probabilities.

    Returns:
        A `Generation`.

    Raises:
        ValueError: Before any compute, for what `generate` refuses; if `k` is not positive or
            `alpha` outside [0, 1]; or if the model has no head of its own (see `Stepper.hidden`).
    """
    check_positive(max_new_tokens=max_new_tokens, k=k)
    if not isinstance(alpha, int | float) or not 0.0 <= alpha <= 1.0:
        raise ValueError(f"alpha must be in [0, 1]; received alpha={alpha!r}.")
    if bos_id is None and tokenizer is not None:
        bos_id = tokenizer.start_id
    if model not in _searches:
        _searches[model] = ContrastiveSearch(model)
    stepper = _searches[model].stepper
    check_request(stepper, tokenizer, Greedy(), stop_ids, bos_id)
    rows = prompt_rows(prompts, valid, tokenizer, bos_id)
    check_rows(rows, max_new_tokens, stepper.vocabulary_size, stepper.context_length)
    if rows:
        outputs = _searches[model](rows, max_new_tokens, k, alpha, stop_ids)
    else:
        outputs = [np.zeros((0, max_new_tokens), t) for t in ("int32", "bool", "float32")]
    texts = None if tokenizer is None else decoded_texts(*outputs[:2], stop_ids, tokenizer)
    return Generation(*outputs[:2], outputs[2] if return_logprobs else None, texts)
