"""Questions with their answers in a text: files of them, windows of the texts, what was found."""

from typing import Any, NamedTuple

import numpy as np
from parts.answer_report import exact_match, f1
from parts.table import write_table

import keras_arch as ka
from keras_arch.text.pairs import read_lines


class Question(NamedTuple):
    """A line of a file.

    Attributes:
        question: The question.
        answer: What is to be found.
        text: The text that holds it.
        start: Characters of the text before it.
    """

    question: str
    answer: str
    text: str
    start: int


class Window(NamedTuple):
    """A row of a question and a part of its text.

    Attributes:
        question: int, the question's number.
        inputs: The model's inputs `[T]`, by name.
        places: int `[T]`, as those of `ka.objectives.answer_windows`.
    """

    question: int
    inputs: Any
    places: Any


class Answered:
    """Questions to a text that holds the answer; a kind, see `parts.labelled_texts`."""

    @staticmethod
    def read(path):
        """Returns the questions of a file.

        Raises:
            ValueError: If a line is no question, answer and text, or the text does not hold the
                answer (there); names the line.
        """
        return [_read_line(path, *numbered) for numbered in enumerate(read_lines(path), 1)]

    @staticmethod
    def names(split):
        """Returns no classes."""
        return []

    @staticmethod
    def head(encoder, classes, dropout):
        """Returns the model."""
        return ka.models.span_answers(encoder)

    @staticmethod
    def examples(split, settings):
        """Returns the windows of all texts, and of each the answer's first and last column."""
        windows, targets = [], []
        for number, question in enumerate(split):
            inputs, places, labels = _windows(question, settings)
            for i, label in enumerate(labels):
                row = {name: values[i] for name, values in inputs.items()}
                windows.append(Window(number, row, places[i]))
                targets.append(label)
        return windows, targets

    @staticmethod
    def rows(tokenizer, windows, labels, length, names):
        """Returns inputs `[B, T]` and targets `[B, 2]`."""
        inputs = {name: np.stack([window.inputs[name] for window in windows]) for name in names}
        return inputs, np.stack(labels)

    @staticmethod
    def report(settings, truth, logits, folder):
        """Writes `predictions.tsv`; returns exact match and F1, in percent."""
        questions, (windows, _) = settings.splits[1], settings.examples[1]
        logits = logits.reshape(len(windows), 2, -1)
        number = np.array([window.question for window in windows])
        rows = []
        for i, question in enumerate(questions):
            of = np.flatnonzero(number == i)
            places = np.stack([windows[k].places for k in of])
            best = ka.objectives.best_answer(logits[of], places)
            found = _text_of(best, question.text, settings.start.tokenizer)
            rows.append((question.question, question.answer, found, best.score))
        scores = [(exact_match(row[2], row[1]), f1(row[2], row[1])) for row in rows]
        write_table(
            folder / "predictions.tsv",
            ["question", "true", "found", "score", "exact_match", "f1"],
            [
                (*texts, f"{score:.6f}", int(match), f"{overlap:.6f}")
                for (*texts, score), (match, overlap) in zip(rows, scores, strict=True)
            ],
        )
        means = 100 * np.mean(scores, axis=0)
        return {"questions": len(rows), "exact_match": float(means[0]), "f1": float(means[1])}


def _read_line(path, number, line):
    columns = line.split("\t")
    question, answer, text, *place = columns if len(columns) in (3, 4) else ("", "", "")
    question, answer = question.strip(), answer.strip()
    if not all((question, answer, text.strip())) or not all(x.strip().isdecimal() for x in place):
        raise ValueError(
            f"{path} must have a question, an answer and a text on each line, with tabs between, "
            f"and maybe how many characters stand before the answer; received {columns} on line "
            f"{number}."
        )
    start = int(place[0]) if place else text.find(answer)
    if start < 0 or not text.startswith(answer, start):
        where = f"at {start}" if place else "in the text"
        raise ValueError(
            f"{path} must have answers that stand in their texts; {answer!r} of line {number} does "
            f"not stand {where}."
        )
    return Question(question, answer, text, start)


def _windows(question, settings):
    """Returns what `answer_windows` does; questions and strides are those of the exported model."""
    tokenizer = settings.start.tokenizer
    places = tokenizer.locate(question.text)
    end = question.start + len(question.answer)
    inside = [
        i
        for i, (a, b) in enumerate(zip(places.starts, places.ends, strict=True))
        if b > question.start and a < end
    ]
    if not inside:
        raise ValueError(
            f"answers must have tokens; the tokenizer knows none of {question.answer!r}, the "
            f"answer to {question.question!r}."
        )
    first, separator = tokenizer.edge_ids
    return ka.objectives.answer_windows(
        tokenizer.encode(question.question)[: settings.context // 2],
        places.token_ids,
        (inside[0], inside[-1]),
        length=settings.context,
        stride=max(1, settings.room // 2),
        classification_id=first,
        separator_id=separator,
        between=settings.between,
    )


def _text_of(answer, text, tokenizer):
    if answer.first is None:
        return ""
    places = tokenizer.locate(text)
    return text[places.starts[answer.first] : places.ends[answer.last]]
