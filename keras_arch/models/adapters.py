"""Tuning a trained model by bottlenecks behind its sublayers."""

import keras

from keras_arch.layers import Adapter, Residual
from keras_arch.models.freezing import matching
from keras_arch.models.low_rank import updates_of
from keras_arch.models.rebuild import rebuilt

#: Placement -> whether the residual part that a block has under a name gets an adapter.
PLACEMENTS = {"houlsby": lambda name: True, "pfeiffer": lambda name: name == "feedforward"}


def add_adapters(model, width, placement="houlsby", activation="relu", trained=()):
    """Returns a model with an `Adapter` behind its sublayers, of which only these are trained.

    An adapter stands inside a residual part, right before the sum, and begins as nothing: the
    outputs are equal. The model given stays as it is; the weights of both are apart.

    Args:
        model: A functional model of blocks, quantised or not.
        width: Of the bottlenecks.
        placement: "houlsby", behind each sublayer of each block (Houlsby et al. 2019, section 2.1);
            or "pfeiffer", behind the feed-forward networks alone (Pfeiffer et al. 2021).
        activation: Of the bottlenecks.
        trained: Patterns of `fnmatch` of the variables that are trained, too, each of a whole path:
            `["*norm/*", "classes/*"]`.

    Returns:
        A functional model. A `.keras` file holds it whole, but does not say what is frozen.

    Raises:
        ValueError: If an argument is out of range, a pattern matches no variable, or the model has
            no blocks, adapters already, or updates of low rank.
    """
    if placement not in PLACEMENTS:
        raise ValueError(
            f"placement must be one of {sorted(PLACEMENTS)}; received placement={placement!r}."
        )
    if updates_of(model):
        raise ValueError(f"the model {model.name!r} has updates of low rank; merge them first.")
    kept = matching({v.path: v for v in model.variables}, trained, "variables")
    adapter = keras.saving.serialize_keras_object(Adapter(width, activation, name="adapter"))
    config, count = _adapted(model.get_config(), adapter, PLACEMENTS[placement])
    if not count:
        raise ValueError(
            f"the model {model.name!r} has no blocks of residual parts, such as PreNorm, to adapt; "
            f"received layers {', '.join(layer.name for layer in model.layers[:8])}."
        )
    old = {variable.path for variable in model.variables}
    adapted = rebuilt(model, config)
    for variable in adapted.variables:
        if variable.path in old and variable.path not in kept:
            variable.trainable = False
    return adapted


def _adapted(value, adapter, wanted, name=None):
    """Returns a config whose residual parts have the adapter, and how many got one.

    Args:
        value: The config, or what stands in it.
        adapter: The adapter's config.
        wanted: Whether a part under a name gets one.
        name: What `value` stands under.
    """
    if isinstance(value, list | tuple):
        pairs = [_adapted(item, adapter, wanted) for item in value]
        return type(value)(item for item, _ in pairs), sum(count for _, count in pairs)
    if not isinstance(value, dict):
        return value, 0
    pairs = {key: _adapted(item, adapter, wanted, key) for key, item in value.items()}
    count = sum(count for _, count in pairs.values())
    value = {key: item for key, (item, _) in pairs.items()}
    if _is_residual(value) and wanted(name):
        host = value["config"]
        if host["adapter"] is not None:
            raise ValueError(f"the model has adapters already; received one in {host['name']!r}.")
        own = {**adapter["config"], "dtype": host["dtype"]}
        value["config"] = {**host, "adapter": {**adapter, "config": own}}
        count += 1
    return value, count


def _is_residual(value):
    kind = keras.saving.get_registered_object(value.get("registered_name"))
    return isinstance(kind, type) and issubclass(kind, Residual) and "adapter" in value["config"]
