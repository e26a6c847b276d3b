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
    train a new head as well, set `trainable` of its variables. Saving merges: a `.keras` file holds
    `W + alpha / rank * A B` and loads as the model without updates, with `compile=False`, for the
    optimizer's state in it is that of the updates.

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
    if any(layer.lora_enabled for layer in layers.values()):
        raise ValueError(f"the model {model.name!r} has updates of low rank already; merge them.")
    found = _matching(layers, patterns, "layers that can have an update")
    freeze(model, "*")
    for layer in found.values():
        layer.enable_lora(rank, lora_alpha=alpha)
    return list(found)


def merge_lora(model):
    """Adds the updates of `add_lora` to their matrices, and begins them anew at zero.

    The outputs stay what they are. `keras_arch.checkpoints.save` takes the model then.

    Raises:
        ValueError: If the model has no updates.
    """
    layers = [layer for layer in _leaves(model) if getattr(layer, "lora_enabled", False)]
    if not layers:
        raise ValueError(f"the model {model.name!r} has no updates of low rank to merge.")
    begin = keras.initializers.HeUniform()
    for layer in layers:
        store = {}
        layer.save_own_variables(store)  # merged
        layer.load_own_variables({name: keras.ops.copy(x) for name, x in store.items()})
        # Keras leaves both at zero, where neither has a gradient.
        layer.lora_kernel_a.assign(begin(layer.lora_kernel_a.shape))


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
