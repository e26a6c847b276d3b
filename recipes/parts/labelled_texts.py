"""Texts with labels: files of them, and how they become rows. One kind for each task.

A kind, of which `parts.answered_questions` is another, has

    read      of a file: what it holds, such as the texts, and the labels of each, a list
    names     of what was read: the names of the classes, sorted
    head      of an encoder, the number of classes and a rate of dropout: the model
    examples  of what was read and the settings: what becomes a row, and its target, two lists
    rows      of a tokenizer, some of both lists, a length, and the names of the model's inputs: the
              inputs by name, and int targets, -1 where nothing is to be told
    report    of the settings, true classes, logits and a folder: figures; writes what they are of
"""

import numpy as np
from parts import class_report
from parts.encoder import pack

import keras_arch as ka
from keras_arch.text.files import split_lines
from keras_arch.text.tabbed_pairs import read_tabbed_pairs


class Labelled:
    """What the kinds of labelled texts share: `encode`, of a tokenizer, a text and a length."""

    @staticmethod
    def names(split):
        """Returns the labels of texts, sorted."""
        return sorted({label for row in split[1] for label in row})

    @classmethod
    def examples(cls, split, settings):
        """Returns of each text what was encoded, and its labels as numbers."""
        numbers = {label: number for number, label in enumerate(settings.labels)}
        tokenizer, length = settings.start.tokenizer, settings.context
        texts = [cls.encode(tokenizer, text, length) for text in split[0]]
        return texts, [[numbers[label] for label in row] for row in split[1]]

    @staticmethod
    def report(settings, truth, logits, folder):
        """Writes plots and `predictions.tsv`; returns accuracy, F1 and calibration."""
        chances = np.exp(logits - logits.max(axis=-1, keepdims=True))
        chances /= chances.sum(axis=-1, keepdims=True)
        class_report.write_predictions(truth, chances, settings.labels, folder)
        return class_report.figures(truth, chances, settings.labels)


class Classified(Labelled):
    """Texts of one label each: a label, a tab and a text on each line."""

    head = staticmethod(ka.models.sequence_classification)

    @staticmethod
    def read(path):
        """Returns texts, and their labels."""
        labels, texts = read_tabbed_pairs(path)
        return texts, [[label] for label in labels]

    @staticmethod
    def encode(tokenizer, text, length):
        """Returns the ids of a text, int `[n]`."""
        return np.array(tokenizer.encode(text)[:length], "int32")

    @staticmethod
    def rows(tokenizer, texts, labels, length, names):
        """Returns inputs `[B, T]` and targets `[B]`."""
        return pack(tokenizer, texts, length, names), np.array(labels, "int32")[:, 0]


class Tagged(Labelled):
    """Texts of labelled words: a word, a tab and its label on each line, an empty one between."""

    head = staticmethod(ka.models.token_classification)

    @staticmethod
    def read(path):
        """Returns texts, as words with spaces between, and the labels of their words."""
        texts, labels, words = [], [], []
        lines = [line.strip("\r") for line in split_lines(path.read_bytes())]
        for number, line in enumerate([*lines, ""], 1):
            if line.strip():
                columns = line.split("\t")
                if len(columns) != 2 or any(len(column.split()) != 1 for column in columns):
                    raise ValueError(
                        f"{path} must have a word, a tab and a label on each line, without spaces; "
                        f"received {columns} on line {number}."
                    )
                words.append(tuple(columns))
            elif words:
                texts.append(" ".join(word for word, _ in words))
                labels.append([label for _, label in words])
                words = []
        if not texts:
            raise ValueError(f"{path} must hold labelled words; received none.")
        return texts, labels

    @staticmethod
    def encode(tokenizer, text, length):
        """Returns the ids of each of a text's words."""
        first, *others = text.split(" ")
        return [tokenizer.encode(word) for word in (first, *(f" {word}" for word in others))]

    @staticmethod
    def rows(tokenizer, texts, labels, length, names):
        """Returns inputs and targets `[B, T]`; the first token of a word tells its label."""
        first, separator = tokenizer.edge_ids
        inputs, targets = ka.objectives.label_pieces(
            texts, labels, length=length, classification_id=first, separator_id=separator
        )
        return {name: inputs[name] for name in names}, targets
