"""From the context that a user hands over to padded arrays, checked before any compute.

Context inputs go in groups by name: `source_valid` says which entries of `source_ids` (and of any
other `source_...` input) are real. Where a group has a `..._valid`, its length is padded to a
bucket.
"""

import keras
import numpy as np

from keras_arch.generation.buckets import padded_length
from keras_arch.generation.prompts import check_ids, pad_right, token_rows

VALID = "valid"


def read_context(stepper, context, rows):
    """Returns the context as numpy arrays `[rows, ...]`, their lengths padded on the right.

    Args:
        stepper: The model's `Stepper`.
        context: Dict from the names of the context inputs to arrays; or None. Instead of an array
            of ids with its `..._valid`, there may be lists of ids of any lengths alone.
        rows: The number of prompts.

    Raises:
        ValueError: If the names are not the model's, or if an array has another type or shape than
            its input, another number of rows than there are prompts, an id outside the vocabulary,
            a row without a real entry, or is longer than the model takes.
    """
    arrays = _with_validity(stepper, context or {})
    stepper.check_context(arrays)
    specs = stepper.graph.specs
    arrays = {name: _array(name, x, specs[name], rows) for name, x in arrays.items()}
    for name in arrays:
        valid = arrays.get(_valid_name(name))
        if valid is not None:
            _check_entries(stepper, name, arrays[name], valid)
    return {name: _padded(stepper, name, x) for name, x in arrays.items()}


def _valid_name(name):
    return f"{name.rpartition('_')[0]}_{VALID}"


def _with_validity(stepper, context):
    """Returns the context with lists of ids made into an array and its validity."""
    if not isinstance(context, dict):
        raise ValueError(f"context must be a dict of arrays; received context={context!r}.")
    arrays = dict(context)
    for name, rows in context.items():
        valid_name = _valid_name(name)
        if not isinstance(rows, list | tuple) or valid_name in context:
            continue
        if name in stepper.context_inputs and valid_name in stepper.context_inputs:
            rows = token_rows(rows, name=f"context[{name!r}]")
            length = max(map(len, rows), default=0)
            arrays[name], arrays[valid_name] = pad_right(rows, length)
    return arrays


def _array(name, x, spec, rows):
    """Returns the input as an array of its type, checked against its shape and the prompts'."""
    try:
        array = keras.ops.convert_to_numpy(x) if keras.ops.is_tensor(x) else np.asarray(x)
    except ValueError:  # rows of several lengths
        array = np.asarray(None)
    dtype = keras.backend.standardize_dtype(spec.dtype)
    kinds = "b" if dtype == "bool" else "iu" if keras.backend.is_int_dtype(dtype) else "fiu"
    # NumPy has no kind for bfloat16.
    if array.size and array.dtype.kind not in kinds and str(array.dtype) != dtype:
        raise ValueError(f"context[{name!r}] must be an array of {dtype}; received {x!r}.")
    wanted = (rows, *spec.shape[1:])
    fits = array.ndim == len(wanted) and all(
        size in (None, n) for size, n in zip(wanted, array.shape, strict=True)
    )
    if not fits:
        raise ValueError(
            f"context[{name!r}] must have the shape {wanted}, a row for each prompt; received "
            f"{array.shape}."
        )
    return array.astype(dtype)


def _check_entries(stepper, name, x, valid):
    """Raises ValueError for an input that does not go with its validity or with the model."""
    label = f"context[{name!r}]"
    if x.shape[:2] != valid.shape:
        raise ValueError(
            f"{label} and context[{_valid_name(name)!r}] must have one length; received the shapes "
            f"{x.shape} and {valid.shape}."
        )
    empty = np.flatnonzero(~valid.any(axis=1))
    if empty.size:
        raise ValueError(f"{label}[{empty[0]}] is empty: no entry of it is valid.")
    limit = stepper.source_length
    if limit is not None and x.shape[1] > limit:
        raise ValueError(
            f"{label} is too long for the model: {x.shape[1]} entries, source_length={limit}."
        )
    if x.dtype.kind == "i":
        ids = [row[keep].tolist() for row, keep in zip(x, valid, strict=True)]
        check_ids(ids, stepper.vocabulary_of(name), name=label)


def _padded(stepper, name, x):
    """Returns the array, its open axis 1 padded to a bucket if its validity is an input."""
    if _valid_name(name) not in stepper.context_inputs:
        return x
    if stepper.graph.specs[name].shape[1] is not None:
        return x
    more = padded_length(x.shape[1], stepper.source_length) - x.shape[1]
    return np.pad(x, [(0, 0), (0, more)] + [(0, 0)] * (x.ndim - 2))
