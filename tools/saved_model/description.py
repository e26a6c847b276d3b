"""What a SavedModel says of itself in its saved_model.pb: signatures and operations.

Field numbers from TensorFlow's saved_model.proto, meta_graph.proto, op_def.proto and
tensor_shape.proto.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from saved_model import protobuf
from saved_model.tensors import from_proto

_EMPTY = memoryview(b"")
_INITIALISER = "__saved_model_init_op"  # TensorFlow keeps it among the signatures; none can ask it


@dataclass(frozen=True)
class TensorInfo:
    """A signature's input or output.

    `name` is `operation:index` in the graph; `dtype` a value of TensorFlow's DataType;
    `shape` has None for a free axis, and is None where not even the rank is fixed.
    """

    name: str
    dtype: int
    shape: tuple[int | None, ...] | None


@dataclass(frozen=True)
class Signature:
    """Inputs and outputs of one endpoint, by name; and what inputs are where none is given."""

    inputs: dict[str, TensorInfo]
    outputs: dict[str, TensorInfo]
    defaults: dict[str, np.ndarray]


@dataclass(frozen=True)
class Description:
    """Signatures by name, and the names of all operations that the graph uses."""

    signatures: dict[str, Signature]
    operations: frozenset[str]


def read_description(folder: Path, tag: str) -> Description:
    """Reads the graph with this tag in `folder/saved_model.pb`.

    Raises ValueError where the file is no SavedModel or has no such graph.
    """
    path = folder / "saved_model.pb"
    try:
        return _description(memoryview(path.read_bytes()), tag)
    except ValueError as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def _description(saved_model: memoryview, tag: str) -> Description:
    for graph in protobuf.values(saved_model, 2):
        information = protobuf.value(graph, 1, _EMPTY)
        if tag in map(protobuf.text, protobuf.values(information, 4)):
            operations = protobuf.values(protobuf.value(information, 2, _EMPTY), 1)
            return Description(
                signatures={
                    name: Signature(
                        inputs=_tensors(signature, 1),
                        outputs=_tensors(signature, 2),
                        defaults={k: from_proto(v) for k, v in _map(signature, 4).items()},
                    )
                    for name, signature in _map(graph, 5).items()
                    if name != _INITIALISER
                },
                operations=frozenset(
                    protobuf.text(protobuf.value(operation, 1, _EMPTY)) for operation in operations
                ),
            )
    raise ValueError(f"it holds no graph with the tag {tag!r}.")


def _tensors(signature: memoryview, number: int) -> dict[str, TensorInfo]:
    return {
        name: TensorInfo(
            name=protobuf.text(protobuf.value(info, 1, _EMPTY)),
            dtype=protobuf.value(info, 2, 0),
            shape=protobuf.shape(protobuf.value(info, 3, _EMPTY)),
        )
        for name, info in _map(signature, number).items()
    }


def _map(message: memoryview, number: int) -> dict[str, memoryview]:
    return {
        protobuf.text(protobuf.value(entry, 1, _EMPTY)): protobuf.value(entry, 2, _EMPTY)
        for entry in protobuf.values(message, number)
    }
