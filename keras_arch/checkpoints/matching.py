"""Matches a checkpoint's tensors with a model's weights, before any of them is read."""

import re
from typing import NamedTuple

import numpy as np

from keras_arch.checkpoints.tensor_files import FLOATS


class Matched(NamedTuple):
    """What is read for what.

    Attributes:
        rows: Our weight's path -> its `Row`.
        names: The tensors' names in the table -> those in the files.
        ignored: Names in the files -> why they are not read.
        repeats: Names in the files -> what they must equal, a name in the table or a number.
    """

    rows: dict
    names: dict
    ignored: dict
    repeats: dict


def match(family, config, files, shapes):
    """Gives every tensor its place.

    Args:
        family: A `Family`.
        config: Our config.
        files: A `TensorFiles`.
        shapes: Our weights' paths -> their shapes.

    Returns:
        A `Matched`.

    Raises:
        ValueError: If a tensor is missing, has no place or another shape or type than its place.
    """
    rows = {row.weight: row for row in family.rows(config)}
    names = _names(family, files)
    extras = family.extras(config)
    needed = {name: row.weight for row in rows.values() for name in row.tensors}
    ignored, repeats = _apart(extras, names, needed)
    for name in needed.keys() - names.keys():
        copies = [x for x, equals in repeats.items() if equals == name]
        if copies:
            names[name] = copies[0]
            del repeats[copies[0]], ignored[copies[0]]
    faults = [
        f"{name} is missing, for our {needed[name]}{family.advice.get(name, '')}"
        for name in needed
        if name not in names
    ]
    used = {names[name] for name in needed if name in names}
    unexpected = files.shapes.keys() - used - ignored.keys()
    faults += [f"{name} {files.shapes[name]} has no place here" for name in unexpected]
    faults += [f"our {path} {shapes[path]} has no row" for path in shapes.keys() - rows.keys()]
    for path in shapes.keys() & rows.keys():
        wanted = zip(rows[path].tensors, rows[path].shapes(shapes[path]), strict=True)
        for name, shape in wanted:
            faults += _unfit(files, names.get(name), shape, f"{path} {shapes[path]}")
    if faults:
        listed = "".join(f"\n* {fault}" for fault in sorted(faults))
        raise ValueError(f"the checkpoint is not one of {config}:{listed}")
    return Matched(rows, names, ignored, repeats)


def check_repeats(matched, files):
    """Raises ValueError if a tensor that is not read holds something else than its reason says."""
    for name, equals in matched.repeats.items():
        found, hint = files.read(name), ""
        if isinstance(equals, str):
            equals = matched.names[equals]
            same = np.array_equal(found, files.read(equals))
            hint = " If it was trained apart, config.json must say tie_word_embeddings=false."
        else:
            same = (found == equals).all()
        if not same:
            raise ValueError(
                f"{name} must equal {equals}, for {matched.ignored[name]} in a model of this "
                f"config; the file has other numbers.{hint}"
            )


def _names(family, files):
    """Returns names in the table -> names in the files; a bare model's lack the prefix."""
    whole = any(name.startswith(family.prefix) for name in files.shapes)
    prefix = "" if whole else family.prefix
    return {prefix + _spelt_anew(name): name for name in files.shapes}


def _spelt_anew(name):
    """Returns a tensor's name; files of BERT's time name a norm's weights as TensorFlow does."""
    name = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name)
    return re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name)


def _apart(extras, names, needed):
    """Returns what `Matched` has of tensors that no weight is made of."""
    ignored, repeats = {}, {}
    for name in names.keys() - needed.keys():
        for extra in extras:
            if re.fullmatch(extra.pattern, name):
                ignored[names[name]] = extra.reason
                if extra.equals is not None:
                    repeats[names[name]] = extra.equals
    return ignored, repeats


def _unfit(files, name, shape, ours):
    if name is None:
        return []
    if files.shapes[name] != shape:
        return [f"{name} {files.shapes[name]} must be {shape}, for our {ours}"]
    if files.dtypes[name] not in FLOATS:
        return [f"{name} is {files.dtypes[name]}, not one of {sorted(FLOATS)}, for our {ours}"]
    return []
