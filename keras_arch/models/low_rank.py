"""Tuning a trained model by updates of low rank to its matrices."""

import keras
from keras import ops

from keras_arch.checks import check_positive, check_positive_number
from keras_arch.layers.part import layers_within
from keras_arch.models.freezing import freeze, matching
from keras_arch.models.rebuild import rebuilt


def add_lora(model, rank, patterns=("*query*", "*key*"), alpha=None):
    """Freezes a model, and gives matrices an update `alpha / rank * A B` to be trained instead.

    It is Keras's own `enable_lora`, on every dense layer and embedding inside the model's layers.
    B begins at zero, so that the outputs stay what they are. `compile` the model afterwards. To
    train a new head as well, set `trainable` of its variables. A `.keras` file holds the sums
    `W + alpha / rank * A B`, as Keras writes it: load it with `compile=False`, for the optimizer's
    state in it is that of the updates. A sum in an int8 matrix is rounded again; `save_trained`
    keeps the updates themselves.

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
    if updates_of(model):
        raise ValueError(f"the model {model.name!r} has updates of low rank already; merge them.")
    found = matching(layers, patterns, "layers that can have an update")
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
    updated = updates_of(model)
    if not updated:
        raise ValueError(f"the model {model.name!r} has no updates of low rank to merge.")
    quantised = [path for path, layer in updated.items() if layer.quantization_mode is not None]
    if quantised:
        raise ValueError(
            "a quantised matrix cannot hold its update; merge before model.quantize; received "
            f"{', '.join(quantised)}."
        )
    merged = rebuilt(model, _without_updates(model.get_config()))
    for layer in _leaves(merged):
        if layer.path in updated:
            store = {}
            updated[layer.path].save_own_variables(store)  # the sums
            layer.load_own_variables({name: ops.copy(value) for name, value in store.items()})
    return merged


def updates_of(model):
    """Returns the layers that have an update, by path."""
    return {x.path: x for x in _leaves(model) if getattr(x, "lora_enabled", False)}


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
