"""What a model makes of texts: log-probabilities of their tokens, and perplexity."""

import weakref
from typing import Any, NamedTuple

import numpy as np
from keras import ops

from keras_arch.checks import check_positive
from keras_arch.generation.generate import bucket
from keras_arch.generation.graph import time_values
from keras_arch.generation.programs import Programs
from keras_arch.generation.prompts import check_ids, check_request, token_rows
from keras_arch.generation.samplers import Greedy
from keras_arch.generation.stepper import Stepper


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


class Scorer:
    """The programs of one model: one for each bucket of lengths and rows.

    Args:
        model: A functional model; see `Stepper` for what it must be.
    """

    def __init__(self, model):
        self.stepper = Stepper(model)
        self.programs = Programs()

    def __call__(self, rows, stride, batch_size):
        """Returns `(log_probabilities, valid)`, numpy `[B, longest row]`; no row's first is scored.

        Args:
            rows: Checked lists of token ids.
            stride: As in `score`; so is `batch_size`.
        """
        log_probabilities = np.zeros((len(rows), max(map(len, rows))), "float32")
        scored = np.zeros(log_probabilities.shape, "bool")
        for slots, jobs in self._jobs(rows, stride).items():
            size = min(batch_size, 1 << (len(jobs) - 1).bit_length())
            for start in range(0, len(jobs), size):
                part = jobs[start : start + size]
                parts = [rows[i][begin:end] for i, begin, _, end in part]
                outputs = self._run(parts, size, slots)
                for (i, begin, first, end), output in zip(part, outputs, strict=False):
                    # Output t belongs to token t + 1 of the window.
                    log_probabilities[i, first:end] = output[first - begin - 1 : end - begin - 1]
                    scored[i, first:end] = True
        return log_probabilities, scored

    def _jobs(self, rows, stride):
        """Returns the windows as (row, begin, first, end), by the slots they are padded to."""
        limit, jobs = self.stepper.context_length, {}
        for i, row in enumerate(rows):
            for begin, first, end in windows(len(row), limit, stride):
                slots = bucket(end - begin)
                slots = slots if limit is None else min(slots, limit)
                jobs.setdefault(slots, []).append((i, begin, first, end))
        return jobs

    def _run(self, rows, size, slots):
        """Returns the log-probability of every token but the first, `[size, slots - 1]`."""
        token_ids, valid = np.zeros((size, slots), "int32"), np.zeros((size, slots), "bool")
        for i, row in enumerate(rows):
            token_ids[i, : len(row)], valid[i, : len(row)] = row, True

        def run(token_ids, valid):
            return next_log_probabilities(self.stepper, token_ids, valid)

        program = self.programs.get(token_ids.shape, run, self.stepper.variables)
        return ops.convert_to_numpy(program(token_ids, valid))


def next_log_probabilities(stepper, token_ids, valid):
    """Returns the log-probability of each token but the first, given those before it.

    Args:
        stepper: The model's `Stepper`.
        token_ids: int32 `[B, T]`, T at least 2.
        valid: bool `[B, T]`, True = real token.

    Returns:
        float32 `[B, T - 1]`; what stands at pads means nothing.
    """
    scores = ops.cast(logits(stepper, token_ids[:, :-1], valid[:, :-1]), "float32")
    chosen = ops.take_along_axis(scores, token_ids[:, 1:, None], axis=-1)[..., 0]
    return chosen - ops.logsumexp(scores, axis=-1)


def logits(stepper, token_ids, valid):
    """Returns the output `[B, T, V]` of a model that is run whole, without state.

    Args:
        stepper: The model's `Stepper`.
        token_ids: int32 `[B, T]`.
        valid: bool `[B, T]`.
    """
    values = time_values(token_ids, valid)
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


# A cache that keeps nothing alive: an entry goes with its model.
_scorers = weakref.WeakKeyDictionary()


def score(model, texts, tokenizer=None, valid=None, stride=None, batch_size=8, bos_id=None):
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

    Returns:
        A `Score`.

    Raises:
        ValueError: Before any compute, if a text has an id outside the vocabulary, if `stride`,
            `batch_size`, tokenizer or `bos_id` do not go with the model, or if the model cannot be
            decoded (see `Stepper`).
    """
    check_positive(batch_size=batch_size)
    if bos_id is None and tokenizer is not None:
        bos_id = tokenizer.start_id
    if model not in _scorers:
        _scorers[model] = Scorer(model)
    scorer = _scorers[model]
    stride = _stride(stride, scorer.stepper.context_length)
    check_request(scorer.stepper, tokenizer, Greedy(), (), bos_id)
    rows = token_rows(texts, valid, tokenizer, name="texts")
    check_ids(rows, scorer.stepper.vocabulary_size, name="texts")
    if not rows:
        return _summary(np.zeros((0, 0), "float32"), np.zeros((0, 0), "bool"))
    started = rows if bos_id is None else [[bos_id, *row] for row in rows]
    log_probabilities, scored = scorer(started, stride, batch_size)
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
