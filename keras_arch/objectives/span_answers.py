"""Questions about a text longer than a row: windows of it, and the answer found in them."""

from typing import NamedTuple

import numpy as np

from keras_arch.checks import check_positive
from keras_arch.objectives.rows import checked_row
from keras_arch.objectives.sentence_pairs import pack_texts


class Answer(NamedTuple):
    """A span of a context.

    Attributes:
        first: int, its first token's place in the context; None: no span is allowed.
        last: int, its last token's.
        score: float, sum of the two logits.
        score_of_none: float, the lowest such sum of the windows' first tokens: how much speaks for
            no answer (Devlin et al. 2019, section 4.3).
    """

    first: int | None
    last: int | None
    score: float
    score_of_none: float


def answer_windows(
    question,
    context,
    answer=None,
    *,
    length,
    stride,
    classification_id,
    separator_id,
    between=1,
):
    """Lays a question before each of the windows that cover a context.

    Args:
        question: Token ids, without special tokens.
        context: Token ids.
        answer: First and last token of the answer, places in the context; None: there is none.
        length: T, columns of a row.
        stride: Tokens from a window's begin to the next one's; at most those of a window.
        classification_id: As in `pack_texts`; so are the others.
        separator_id: As in `pack_texts`.
        between: As in `pack_texts`.

    Returns:
        `(inputs, places, labels)` for W windows: the dict of `pack_texts`, `[W, T]`; int32
        `[W, T]`, each column's place in the context, -1 where none of it stands; int32 `[W, 2]`,
        columns of the answer's first and last token, both 0, the first token, in windows that do
        not hold all of it.

    Raises:
        ValueError: If an argument is out of range, or the question leaves no room.

    Source: Devlin et al. 2019, section 4.2; windows as in `run_squad` of its code.
    """
    check_positive(length=length, stride=stride, between=between)
    question, context = checked_row(question=question), checked_row(context=context)
    first = len(question) + 1 + between
    room = length - first - 1
    if room < 1:
        raise ValueError(
            f"question must leave room for the context; received {len(question)} tokens, "
            f"length={length}."
        )
    if stride > room:
        raise ValueError(
            f"stride must be at most {room}, what a window holds, or tokens would be in none; "
            f"received stride={stride}."
        )
    if answer is not None:
        _check_answer(answer, len(context))
    begins = np.arange(0, max(len(context) - room, 0) + stride, stride)
    windows = [context[begin : begin + room] for begin in begins]
    inputs = pack_texts(
        [question] * len(windows),
        windows,
        length=length,
        classification_id=classification_id,
        separator_id=separator_id,
        between=between,
    )
    offsets = np.arange(length) - first
    sizes = np.array([len(window) for window in windows])[:, None]
    places = np.where((offsets >= 0) & (offsets < sizes), offsets + begins[:, None], -1)
    labels = np.zeros((len(windows), 2), "int32")
    if answer is not None:
        columns = np.array([answer]) - begins[:, None] + first
        inside = (columns[:, :1] >= first) & (columns[:, 1:] < first + sizes)
        labels = np.where(inside, columns, labels).astype("int32")
    return inputs, places.astype("int32"), labels


def best_answer(logits, places, longest=30):
    """Finds the answer in the windows of one context.

    Args:
        logits: float `[W, 2, T]`, of start and end, from `span_answers`.
        places: int `[W, T]`, from `answer_windows`.
        longest: Most tokens of an answer.

    Returns:
        `Answer`: of all spans inside the context, none with its end before its start, that with the
        highest sum of logits; of equal ones the first.

    Raises:
        ValueError: If the shapes do not fit, or `longest` is not positive.
    """
    check_positive(longest=longest)
    logits, places = np.asarray(logits, "float64"), np.asarray(places)
    if places.ndim != 2 or logits.shape != (len(places), 2, places.shape[-1]):
        raise ValueError(
            "logits and places must have shapes [W, 2, T] and [W, T]; received "
            f"{logits.shape} and {places.shape}."
        )
    time = np.arange(places.shape[1])
    size = time[None] - time[:, None]
    inside = places >= 0
    allowed = inside[:, :, None] & inside[:, None] & (size >= 0) & (size < longest)
    scores = logits[:, 0, :, None] + logits[:, 1, None, :]
    none = float(scores[:, 0, 0].min())
    if not allowed.any():
        return Answer(None, None, float("-inf"), none)
    scores = np.where(allowed, scores, -np.inf)
    window, start, end = np.unravel_index(scores.argmax(), scores.shape)
    score = float(scores[window, start, end])
    return Answer(int(places[window, start]), int(places[window, end]), score, none)


def _check_answer(answer, size):
    answer = checked_row(answer=answer, vocabulary_size=size)
    if len(answer) != 2 or answer[0] > answer[1]:
        raise ValueError(
            "answer must be the first and the last token's place in the context; received "
            f"answer={answer.tolist()}."
        )
