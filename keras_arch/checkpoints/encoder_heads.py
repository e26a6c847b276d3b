"""Encoders' families with each of their heads."""

import re
from collections.abc import Callable
from typing import NamedTuple

from keras_arch.checkpoints.encoders import pooler
from keras_arch.checkpoints.table import Extra, Row, dense
from keras_arch.models import (
    builder,
    sequence_classification,
    span_answers,
    token_classification,
    token_vectors,
)


class Head(NamedTuple):
    """What a family with a head has more than that without.

    Attributes:
        name: Of the function in `keras_arch.models` that puts it on.
        architecture: As in `Family`.
        put: Function of our encoder and its config that returns the model; of `classes` and
            `dropout` as well where the head has classes.
        rows: Of the head.
        copies: Tensors that repeat the table or a row's, in heads that fill masks.
        model_name: What the model's name has after the encoder's; default `name`.
        classifies: As in `Family`.
        class_dropout: As in `Family`.
    """

    name: str
    architecture: str
    put: Callable
    rows: list[Row] = []
    copies: list[Extra] = []
    model_name: str | None = None
    classifies: bool = False
    class_dropout: str | None = None


def bare_vectors(architecture):
    """Returns the `Head` that leaves the pooler out."""
    return Head("token_vectors", architecture, lambda encoder, config: token_vectors(encoder))


def span_head(architecture):
    """Returns the `Head` that finds the spans of answers."""
    return Head(
        "span_answers",
        architecture,
        lambda encoder, config: span_answers(encoder),
        dense("span_scores/projection", "qa_outputs"),
    )


def class_head(architecture, rows, put_pooler=None, dropout="classifier_dropout"):
    """Returns the `Head` that classifies rows.

    Args:
        architecture: As in `Family`.
        rows: Of all between the encoder and the logits.
        put_pooler: Function of an encoder that puts on the pooler that it lacks; None: it has one.
        dropout: As `class_dropout` in `Family`.
    """

    def put(encoder, config, classes=2, dropout=0.0):
        encoder = put_pooler(encoder) if put_pooler else encoder
        return sequence_classification(encoder, classes, dropout)

    return Head(
        "sequence_classification",
        architecture,
        put,
        rows,
        model_name="pooler_classification" if put_pooler else "classification",
        classifies=True,
        class_dropout=dropout,
    )


def tag_head(architecture, dropout="classifier_dropout"):
    """Returns the `Head` that classifies tokens; arguments as those of `class_head`."""

    def put(encoder, config, classes=2, dropout=0.0):
        return token_classification(encoder, classes, dropout)

    return Head(
        "token_classification",
        architecture,
        put,
        dense("classes", "classifier"),
        model_name="tagging",
        classifies=True,
        class_dropout=dropout,
    )


def with_heads(family, tasks, *heads):
    """Returns a family and those of its encoder under a head.

    Args:
        family: Of the encoder alone.
        tasks: Beginnings of the names of all heads' tensors.
        heads: Each a `Head`.
    """
    return [_bodied(family, tasks), *(_headed(family, tasks, head) for head in heads)]


def _bodied(family, tasks):
    def read(fields):
        fields.get("tie_word_embeddings")  # Says something of heads that are not read.
        return family.read(fields)

    def extras(config):
        return [*family.extras(config), *_of_other_heads(tasks, [])]

    missing = "; head='token_vectors' reads the encoder without its pooler"
    advice = {name: missing for row in pooler(family.prefix) for name in row.tensors}
    return family._replace(read=read, extras=extras, bare=True, advice=advice)


def _headed(family, tasks, head):
    def read(fields):
        tied = (True,) if head.copies else (True, False)
        fields.expect("tie_word_embeddings", *tied)
        if head.classifies:
            _check_task(fields, head)
        return family.read(fields)

    def rows(config):
        return [row for row in family.rows(config) if row not in pooler(family.prefix)] + head.rows

    def extras(config):
        unused = [row for row in family.rows(config) if row in pooler(family.prefix)]
        unused = [row for row in unused if row not in head.rows]
        reason = "of the pooler, which the head does not read"
        return [
            *family.extras(config),
            *(Extra(re.escape(name), reason) for row in unused for name in row.tensors),
            *_of_other_heads(tasks, head.rows),
            *head.copies,
        ]

    def build(config, **options):
        return head.put(builder(config)(config), config, **options)

    return family._replace(
        architecture=head.architecture,
        model_name=f"{family.model_name}_{head.model_name or head.name}",
        read=read,
        rows=rows,
        extras=extras,
        bare=not head.rows,
        head=head.name,
        build=build,
        classifies=head.classifies,
        class_dropout=head.class_dropout,
    )


def _check_task(fields, head):
    """Raises ValueError if a file is of classes of other things, or has another function of them.

    Files of rows' classes and of tokens' have tensors of the same names and shapes.
    """
    task = head.architecture.partition("For")[2]
    named = fields.get("architectures") or [task]
    if not any(name.endswith(task) for name in named) and "architectures" not in fields.ignored:
        raise ValueError(
            f"config.json: architectures must be of a For{task} to read head={head.name!r}; "
            f"received architectures={named!r}. If the file's head is one, load with "
            "ignore_fields=['architectures']."
        )
    # Its logits are those of one class alone.
    fields.expect("problem_type", None, "single_label_classification")


def _of_other_heads(tasks, rows):
    """Returns the extras of all heads but that of these rows."""
    own = [name for row in rows for name in row.tensors]
    return [
        Extra(rf"{re.escape(task)}\..*", "of a head that was not asked for")
        for task in tasks
        if not any(name.startswith(f"{task}.") for name in own)
    ]
