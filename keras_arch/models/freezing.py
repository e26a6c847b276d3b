"""What of a model is frozen, and the file of what is not.

All work on a model in place; a variable's path says where it belongs, such as
"block_0/attention/self_attention/query_key_value/kernel".
"""

import fnmatch

import keras
import numpy as np


def freeze(model, *patterns):
    """Takes the variables whose paths match from those that `fit` trains.

    `compile` the model afterwards. A file of the model does not say what is frozen.

    Args:
        model: A built model.
        patterns: Of `fnmatch`, each of a whole path: "*embedding*", "block_[0-3]/*", or "*" for
            all.

    Returns:
        The paths that match, in the order of `model.variables`.

    Raises:
        ValueError: If there is no pattern, or one matches no variable.
    """
    if not patterns or not all(isinstance(pattern, str) for pattern in patterns):
        raise ValueError(f"patterns must be strings, at least one; received {patterns}.")
    found = matching({v.path: v for v in model.variables}, patterns, "variables")
    for variable in found.values():
        variable.trainable = False
    return list(found)


def save_trained(model, path):
    """Writes the values of the weights that `fit` trains, and of no others: a NumPy `.npz` file.

    Args:
        model: A model of which most is frozen.
        path: The file.
    """
    with open(path, "wb") as file:
        np.savez(file, **{v.path: _float32(v) for v in model.trainable_variables})


def load_trained(model, path):
    """Gives the weights that `fit` trains the values of a file of `save_trained`.

    Args:
        model: A model like the one that was saved, frozen and adapted by the same calls.
        path: The file.

    Raises:
        ValueError: If the file has not exactly these weights, in these shapes.
    """
    with np.load(path, allow_pickle=False) as file:
        values = dict(file)
    expected = {v.path: tuple(v.shape) for v in model.trainable_variables}
    found = {name: value.shape for name, value in values.items()}
    if found != expected:
        name = sorted(k for k in {**found, **expected} if found.get(k) != expected.get(k))[0]
        raise ValueError(
            f"{path} must hold the weights of {model.name!r} that are trained; for {name!r} the "
            f"model has the shape {expected.get(name)}, the file {found.get(name)}."
        )
    for variable in model.trainable_variables:
        variable.assign(values[variable.path])


def matching(named, patterns, kind):
    """Returns those whose names match a pattern, each of which must match one."""
    found = set()
    for pattern in patterns:
        names = fnmatch.filter(named, pattern)
        if not names:
            raise ValueError(
                f"patterns must each match {kind}; received {pattern!r}, which matches none of "
                f"{', '.join(list(named)[:8])}{', ...' if len(named) > 8 else ''}."
            )
        found.update(names)
    return {name: value for name, value in named.items() if name in found}


def _float32(variable):
    return keras.ops.convert_to_numpy(keras.ops.cast(variable, "float32"))
