"""Tuning a trained model by few weights: what is frozen, and updates of low rank to its matrices.

Both work on a model in place, before it is compiled; a variable's path says where it belongs, such
as "block_0/attention/query_key_value/kernel".
"""

import fnmatch

import keras

from keras_arch.checks import check_positive, check_positive_number
from keras_arch.layers.part import layers_within


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
        ValueError: If a pattern matches no variable.
    """
    found = _matching({v.path: v for v in model.variables}, patterns, "variables")
    for variable in found.values():
        variable.trainable = False
    return list(found)


def add_lora(model, rank, patterns=("*query*", "*key*"), alpha=None):
    """Freezes a model, and gives matrices an update `alpha / rank * A B` to be trained instead.

    It is Keras's own `enable_lora`, on every dense layer and embedding inside the model's layers.
    B begins at zero, so that the outputs stay what they are. `compile` the model afterwards. To
    train a new head as well, set `trainable` of its variables. A `.keras` file holds the sums
    `W + alpha / rank * A B`, as Keras writes it: load it with `compile=False`, for the optimizer's
    state in it is that of the updates.

    Args:
        model: A built model, not quantised by GPTQ.
        rank: Columns of A, rows of B.
        patterns: Of `fnmatch`, each of a layer's whole path. The default is the projections of
            queries, keys and values; "*" is every matrix that can be updated.
        alpha: Default `rank`.

    Returns:
        The paths of the layers with an update.

    Raises:
        ValueError: If a pattern matches no layer that can have an update, the model has updates
            already, or a number is not positive.

    Source: Hu et al. 2021, section 4.1.
    """
    check_positive(rank=rank)
    if alpha is not None:
        check_positive_number(alpha=alpha)
    layers = {layer.path: layer for layer in _leaves(model) if hasattr(layer, "enable_lora")}
    if any(map(_has_update, layers.values())):
        raise ValueError(f"the model {model.name!r} has updates of low rank already; merge them.")
    found = _matching(layers, patterns, "layers that can have an update")
    freeze(model, "*")
    for layer in found.values():
        layer.enable_lora(rank, lora_alpha=alpha)
    return list(found)


def merge_lora(model):
    """Returns a model without updates that computes the same: its matrices hold them.

    All of it can be trained; `keras_arch.checkpoints.save` takes it.

    Args:
        model: A functional model after `add_lora`.

    Raises:
        ValueError: If the model has no updates, or matrices that have are quantised; or if two of
            its variables have one path.
    """
    updated = {layer.path: layer for layer in _leaves(model) if _has_update(layer)}
    if not updated:
        raise ValueError(f"the model {model.name!r} has no updates of low rank to merge.")
    quantised = [path for path, layer in updated.items() if layer.quantization_mode is not None]
    if quantised:
        raise ValueError(
            "a quantised matrix cannot hold its update; merge before model.quantize; received "
            f"{', '.join(quantised)}."
        )
    values = {variable.path: variable for variable in model.variables}
    if len(values) < len(model.variables):
        raise ValueError(f"the variables of {model.name!r} must have paths of their own.")
    merged = type(model).from_config(_without_updates(model.get_config()))
    for variable in merged.variables:
        variable.assign(values[variable.path])
    for layer in _leaves(merged):
        if layer.path in updated:
            store = {}
            updated[layer.path].save_own_variables(store)  # the sums
            layer.load_own_variables(store)
    return merged


def _has_update(layer):
    return getattr(layer, "lora_enabled", False)


def _without_updates(value):
    """Returns a config whose layers have none: Keras keeps those of a model's own layers."""
    if isinstance(value, dict):
        return {k: _without_updates(v) for k, v in value.items() if not k.startswith("lora_")}
    if isinstance(value, list | tuple):
        return type(value)(map(_without_updates, value))
    return value


def _leaves(model):
    """Yields the layers of a model that are in it, and those inside of them."""
    for layer in model.layers:
        if isinstance(layer, keras.Model):
            yield from _leaves(layer)
        else:
            yield layer
            yield from (inner for _, inner in layers_within(layer))


def _matching(named, patterns, kind):
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
