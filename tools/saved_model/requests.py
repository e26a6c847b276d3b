"""From JSON to a signature's input arrays, and from its output arrays to JSON."""

import json

import numpy as np

from saved_model.description import Signature, TensorInfo
from saved_model.tensors import DTYPES, STRING


def from_texts(signature: Signature, texts: list[str]) -> dict[str, np.ndarray]:
    """The texts as a batch for the only input of a signature that has no default.

    Raises ValueError if there are others, or if that input is not a batch of strings.
    """
    needed = signature.inputs.keys() - signature.defaults.keys()
    if len(needed) != 1:
        raise ValueError(
            "--text needs a signature with one input that has no default; this one has "
            f"{_names(needed)}: use --inputs."
        )
    return from_values(signature, {next(iter(needed)): texts})


def from_json(signature: Signature, text: str) -> dict[str, np.ndarray]:
    """A JSON object, from input name to nested list. Raises ValueError if it does not fit."""
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"--inputs is not JSON ({error}); received {text!r}.") from error
    if not isinstance(values, dict):
        raise ValueError(f"--inputs must be a JSON object of inputs by name; received {text!r}.")
    return from_values(signature, values)


def from_values(signature: Signature, values: dict) -> dict[str, np.ndarray]:
    """Nested lists by input name as arrays, with the signature's defaults for those left out.

    Raises ValueError if they do not fit.
    """
    needed = signature.inputs.keys() - signature.defaults.keys()
    if not needed <= values.keys() <= signature.inputs.keys():
        free = f"; free to give are {_names(signature.defaults)}" if signature.defaults else ""
        raise ValueError(f"the inputs must be {_names(needed)}{free}; received {_names(values)}.")
    given = {name: _array(name, value, signature.inputs[name]) for name, value in values.items()}
    return {name: given.get(name, signature.defaults.get(name)) for name in signature.inputs}


def to_lines(outputs: dict[str, np.ndarray]) -> list[str]:
    """A JSON object for each row of a batch, or one for all where they share no batch axis."""
    lists = {name: _list(array) for name, array in outputs.items()}
    sizes = {array.shape[:1] for array in outputs.values()}
    if len(sizes) == 1 and sizes != {()}:
        rows = [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
    else:
        rows = [lists]
    return [json.dumps(row, ensure_ascii=False) for row in rows]


def _array(name: str, value, info: TensorInfo) -> np.ndarray:
    if info.dtype not in DTYPES:
        raise ValueError(f"input {name!r} has TensorFlow's data type {info.dtype}: not supported.")
    kind = "string" if info.dtype == STRING else DTYPES[info.dtype].name
    shape = "any shape" if info.shape is None else f"shape {_written(info.shape)}"
    try:
        array = _strings(value) if info.dtype == STRING else _numbers(value, DTYPES[info.dtype])
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(
            f"input {name!r} must be {kind} of {shape}; received {json.dumps(value)} ({error})."
        ) from error
    if not _fits(array.shape, info.shape):
        raise ValueError(
            f"input {name!r} must be {kind} of {shape}; received shape {_written(array.shape)}."
        )
    return array


def _strings(value) -> np.ndarray:
    array = np.asarray(value, object)
    for leaf in array.flat:
        if not isinstance(leaf, str):
            raise ValueError("not a regular array of strings")
    encoded = np.empty(array.shape, object)
    encoded.flat = [leaf.encode() for leaf in array.flat]
    return encoded


def _numbers(value, dtype: np.dtype) -> np.ndarray:
    found = np.asarray(value)
    if found.size and not np.can_cast(found.dtype, dtype, "same_kind"):
        raise ValueError(f"not {dtype.name} but {found.dtype.name}")
    return np.asarray(value, dtype)


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...] | None) -> bool:
    if wanted is None:
        return True
    return len(shape) == len(wanted) and all(
        size in (None, found) for found, size in zip(shape, wanted, strict=True)
    )


def _list(array: np.ndarray):
    if array.dtype == object:
        texts = np.empty(array.shape, object)
        texts.flat = [string.decode(errors="replace") for string in array.flat]
        array = texts
    return array.tolist()


def _names(mapping) -> str:
    return ", ".join(sorted(mapping)) or "none"


def _written(shape: tuple[int | None, ...]) -> str:
    return str([size if size is not None else "any" for size in shape]).replace("'", "")
