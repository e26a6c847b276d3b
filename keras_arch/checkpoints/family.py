"""What the package must know of a family of checkpoints."""

from collections.abc import Callable
from typing import NamedTuple


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
