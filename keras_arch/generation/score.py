"""What a model makes of texts: log-probabilities of their tokens, and perplexity."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from keras import ops, tree

from keras_arch.checks import check_positive
from keras_arch.generation.buckets import padded_length
from keras_arch.generation.context import read_context
from keras_arch.generation.graph import Ref, time_values
from keras_arch.generation.programs import prepare
from keras_arch.generation.prompts import check_ids, check_request, pad_right, token_rows
from keras_arch.generation.request import start_id
from keras_arch.generation.samplers import Greedy


class Score(NamedTuple):
    """The log-probabilities of texts, numpy; column t of L belongs to a text's token t.

    Attributes:
        log_probabilities: float32 `[B, L]`, of each token given those before it, in nats; 0 where
            `valid` is False.
        valid: bool `[B, L]`, True = token that was scored.
        totals: float64 `[B]`, the sum of each text's log-probabilities.
        token_counts: int64 `[B]`, the tokens of each text that were scored.
        perplexities: float64 `[B]`, `exp(-total / tokens)`; 1 for a text without scored tokens.
        perplexity: The same over all texts: `exp(-sum of totals / sum of tokens)`.
    """

    log_probabilities: Any
    valid: Any
    totals: Any
    token_counts: Any
    perplexities: Any
    perplexity: float


@dataclasses.dataclass(frozen=True, eq=False)
class Scorer:
    """Reads texts in windows, a bucket of shapes at a time.

    Attributes:
        prepared: The model's `Prepared`.
        rows: Checked lists of token ids.
        context: Dict of numpy arrays for the context inputs.
        stride: As in `score`; so is `batch_size`.
    """

    prepared: Any
    rows: list
    context: dict
    stride: int
    batch_size: int

    def run(self):
        """Returns `(log_probabilities, valid)`, numpy `[B, longest row]`, none for first tokens."""
        log_probabilities = np.zeros((len(self.rows), max(map(len, self.rows))), "float32")
        scored = np.zeros(log_probabilities.shape, "bool")
        for slots, jobs in self._jobs().items():
            size = min(self.batch_size, 1 << (len(jobs) - 1).bit_length())
            for start in range(0, len(jobs), size):
                part = jobs[start : start + size]
                for (i, begin, first, end), output in zip(
                    part, self._read(part, size, slots), strict=False
                ):
                    # Output t belongs to token t + 1 of the window.
                    log_probabilities[i, first:end] = output[first - begin - 1 : end - begin - 1]
                    scored[i, first:end] = True
        return log_probabilities, scored

    def _jobs(self):
        """Returns the windows as (row, begin, first, end), by the slots they are padded to."""
        limit, jobs = self.prepared.stepper.context_length, {}
        for i, row in enumerate(self.rows):
            for begin, first, end in windows(len(row), limit, self.stride):
                slots = padded_length(end - begin, limit)
                jobs.setdefault(slots, []).append((i, begin, first, end))
        return jobs

    def _read(self, jobs, size, slots):
        """Returns the log-probability of every token but the first, `[size, slots - 1]`."""
        # Windows without a token fill the batch.
        jobs = [*jobs, *[(0, 0, 0, 0)] * (size - len(jobs))]
        parts = [self.rows[i][begin:end] for i, begin, _, end in jobs]
        context = {name: x[[i for i, *_ in jobs]] for name, x in self.context.items()}
        arguments = *pad_right(parts, slots), context
        stepper = self.prepared.stepper

        def run(token_ids, valid, context):
            return next_log_probabilities(stepper, token_ids, valid, context)

        key = tuple(map(np.shape, tree.flatten(arguments)))
        program = self.prepared.functions.get(key, run, stepper.variables)
        return ops.convert_to_numpy(program(*arguments))


def next_log_probabilities(stepper, token_ids, valid, context=None):
    """Returns the log-probability of each token but the first, given those before it.

    Args:
        stepper: The model's `Stepper`.
        token_ids: int32 `[B, T]`, T at least 2.
        valid: bool `[B, T]`, True = real token.
        context: Dict of tensors for the context inputs.

    Returns:
        float32 `[B, T - 1]`; what stands at pads means nothing.
    """
    scores = logits(stepper, token_ids[:, :-1], valid[:, :-1], context)
    scores = ops.cast(scores, "float32")
    chosen = ops.take_along_axis(scores, token_ids[:, 1:, None], axis=-1)[..., 0]
    return chosen - ops.logsumexp(scores, axis=-1)


def logits(stepper, token_ids, valid, context=None):
    """Returns the output `[B, T, V]` of a model that is run whole, without state.

    Args:
        stepper: The model's `Stepper`.
        token_ids: int32 `[B, T]`.
        valid: bool `[B, T]`.
        context: Dict of tensors for the context inputs.
    """
    stepper.check_context(context or {})
    values = time_values(token_ids, valid)
    values |= {Ref(name, 0, 0): value for name, value in (context or {}).items()}
    for call in stepper.graph.calls:
        call.run(values)
    return values[stepper.graph.output]


def windows(length, context_length, stride):
    """Yields `(begin, first, end)`: the tokens read, and of these the first that is scored.

    Args:
        length: Tokens of the text; the first of all is read only.
        context_length: Most tokens of a window; None means no limit.
        stride: Tokens that a window goes on.
    """
    end = length if context_length is None else min(length, context_length)
    if end > 1:
        yield 0, 1, end
    while end < length:
        first, end = end, min(end + stride, length)
        yield end - context_length, first, end


def score(
    model,
    texts,
    tokenizer=None,
    valid=None,
    stride=None,
    batch_size=8,
    bos_id=None,
    context=None,
):
    """Returns the log-probability of each token of texts, and the texts' perplexities.

    ```
    ka.score(model, ["To be, or not to be"], tokenizer=tokenizer, bos_id=0).perplexity
    ```

    The first token of a text has nothing before it. It is scored only where there is a `bos_id` for
    the text to start from. A text without tokens counts for nothing: 0 tokens, total 0.

    A text longer than the model's context is read in windows, each as long as the context and
    `stride` tokens further on. Every token is scored once, given at least `context_length - stride`
    tokens before it, or all there are. With `stride=1` all have the `context_length - 1` before
    them, for one run of the model for each token.

    Args:
        model: A functional `keras.Model` from `token_ids` and `valid` to logits `[B, T, V]`.
        texts: Lists of token ids of any lengths; or an int array `[B, T]` with `valid`; or, with a
            tokenizer, a string or a list of strings.
        tokenizer: A tokenizer of `keras_arch.text`.
        valid: bool `[B, T]`, True = real token; pads may stand on either side.
        stride: Tokens that a window goes on, less than the context; default half the context.
        batch_size: Most windows that the model reads at once.
        bos_id: What each text starts from; default the tokenizer's "begin" or "end" id.
        context: What the model's other inputs get, by name, a row for each text; as in `generate`.

    Returns:
        A `Score`.

    Raises:
        ValueError: Before any compute, if a text has an id outside the vocabulary, if `stride`,
            `batch_size`, tokenizer, `bos_id` or context do not go with the model, or if the model
            cannot be decoded (see `Stepper`).
    """
    check_positive(batch_size=batch_size)
    bos_id = start_id(bos_id, tokenizer)
    prepared = prepare(model)
    stepper = prepared.stepper
    stride = _stride(stride, stepper.context_length)
    check_request(stepper, tokenizer, Greedy(), (), bos_id)
    rows = token_rows(texts, valid, tokenizer, name="texts")
    check_ids(rows, stepper.vocabulary_size, name="texts")
    context = read_context(stepper, context, len(rows))
    if not rows:
        return _summary(np.zeros((0, 0), "float32"), np.zeros((0, 0), "bool"))
    started = rows if bos_id is None else [[bos_id, *row] for row in rows]
    log_probabilities, scored = Scorer(prepared, started, context, stride, batch_size).run()
    column = 0 if bos_id is None else 1
    return _summary(log_probabilities[:, column:], scored[:, column:])


def _stride(stride, context_length):
    """Returns the stride, checked; half the context if it is None."""
    if stride is None:
        stride = max(1, (context_length or 0) // 2)
    check_positive(stride=stride)
    if context_length is not None and stride >= context_length:
        raise ValueError(
            "stride must be less than the model's context; received "
            f"stride={stride}, context_length={context_length}."
        )
    return stride


def _summary(log_probabilities, valid):
    totals = log_probabilities.sum(axis=1, dtype="float64")
    counts = valid.sum(axis=1)
    perplexities = np.exp(-totals / np.maximum(counts, 1))
    perplexity = float(np.exp(-totals.sum() / max(counts.sum(), 1)))
    return Score(log_probabilities, valid, totals, counts, perplexities, perplexity)
