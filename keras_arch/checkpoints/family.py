"""What the package must know of a family of checkpoints."""

from collections.abc import Callable
from typing import NamedTuple

from keras_arch.models import builder


def build_body(config):
    """Returns the model that the catalog has for a config."""
    return builder(config)(config)


class Family(NamedTuple):
    """A kind of Hugging Face checkpoint: its `config.json` and its table.

    Attributes:
        model_type: As in `config.json`.
        architecture: Name of the class in `transformers` that has all of our weights.
        model_name: Of our models of this family, from one builder.
        read: Function of `Fields` that returns our config.
        write: Function of our config that returns the fields of `config.json` that `read` reads.
        recover: Function of a functional model of ours that returns its config.
        rows: Function of our config that returns the table, a list of `Row`.
        extras: Function of our config that returns a list of `Extra`.
        prefix: Of the names of all tensors but the head's; files of the bare model have none.
        bare: Whether it is saved without the prefix.
        head: Name of the function in `keras_arch.models` that puts the head on, where a model of
            the family may have one or another; None: its builder's own, or none.
        build: Function of our config that returns the model; where the head has classes, of their
            number `classes` and a rate of `dropout` before them as well.
        classifies: Whether the head has classes.
        class_dropout: Field of `config.json` with that rate, where there is one.
        advice: Names in the table -> what to say of a file that lacks that tensor.
    """

    model_type: str
    architecture: str
    model_name: str
    read: Callable
    write: Callable
    recover: Callable
    rows: Callable
    extras: Callable
    prefix: str = ""
    bare: bool = False
    head: str | None = None
    build: Callable = build_body
    classifies: bool = False
    class_dropout: str | None = None
    advice: dict = {}
