"""Reads a config back from the layers of a functional model, and proves that it is the right one.

`.keras` files keep layers and how they are wired, not the config they were built from.
"""

import functools
import itertools

from keras_arch.checkpoints.activations import name_of
from keras_arch.checkpoints.classes import head_options
from keras_arch.models import outline

#: Not part of what a model computes once it has its weights.
_APART = {"dtype", "trainable", "build_config", "registered_name", "seed", "module"}


def stack(model, pattern):
    """Returns the blocks of a stack.

    Args:
        model: A functional model.
        pattern: The blocks' name, with `{}` for the number.

    Raises:
        ValueError: If there is none.
    """
    by_name = {layer.name: layer for layer in model.layers}
    numbered = (by_name.get(pattern.format(i)) for i in itertools.count())
    layers = list(itertools.takewhile(lambda layer: layer is not None, numbered))
    if not layers:
        raise ValueError(f"model must have blocks {pattern.format(0)}, ...; received {model.name}.")
    return layers


def decoder_fields(model):
    """Returns the fields that a decoder-only model's config has whatever its kind, but one."""
    return {**_stack_fields(model), "tied": not has_layer(model, "head")}


def encoder_fields(model):
    """Returns the fields that all configs of `EncoderConfig` have."""
    context_length = model.get_layer("position_table").context_length
    return {**_stack_fields(model), "context_length": context_length}


def encoder_decoder_fields(model):
    """Returns the fields that all configs of `EncoderDecoderConfig` have, and the activation."""
    encoder, decoder = stack(model, "encoder_block_{}"), stack(model, "decoder_block_{}")
    depths = {"encoder_layers": len(encoder), "decoder_layers": len(decoder)}
    return {**_fields(model, encoder[0]), **depths}


def _stack_fields(model):
    layers = stack(model, "block_{}")
    return {**_fields(model, layers[0]), "layers": len(layers)}


def _fields(model, block):
    tokens, feedforward = model.get_layer("tokens"), block.feedforward.sublayer
    return {
        "vocabulary_size": tokens.vocabulary_size,
        "width": tokens.width,
        "heads": block.attention.sublayer.heads,
        "hidden_width": feedforward.hidden_width,
        "activation": name_of(feedforward.activation),
        "dropout": block.attention.dropout,
        "norm_epsilon": block.attention.norm.epsilon,
    }


def has_layer(model, name):
    """Returns whether the model has a layer of this name."""
    return any(layer.name == name for layer in model.layers)


def recovered(model, family):
    """Returns a model's config, if its own model has the same layers, wired like these.

    Args:
        model: A functional model.
        family: A `Family`.

    Raises:
        ValueError: If the model was wired in another way, naming where.
    """
    build = family.build
    try:
        config = family.recover(model)
        if family.classifies:
            build = functools.partial(build, **head_options(model))
    except (AttributeError, ValueError) as error:
        raise ValueError(f"{_AS_BUILT}; received {model.name}, where {error}") from error
    expected, found = (_by_name(m) for m in (outline(config, build), model))
    if expected.keys() != found.keys():
        raise ValueError(
            f"{_AS_BUILT}; {model.name} has the layers {sorted(found.keys() - expected.keys())} "
            f"more and {sorted(expected.keys() - found.keys())} less than that of {config}."
        )
    for name in found:
        if found[name] != expected[name]:
            raise ValueError(
                f"{_AS_BUILT}; the layer {name} of {model.name} is not that of {config}."
            )
    return config


_AS_BUILT = "model must be as its builder in keras_arch.models wires it"


def _by_name(model):
    """Returns the entries of layers and operations in the model's config, by name."""
    entries, layers = model.get_config()["layers"], {layer.name for layer in model.layers}
    # Keras numbers operations by how many of their kind the process has made.
    operations = [entry["name"] for entry in entries if entry["name"] not in layers]
    names = {name: f"operation_{i}" for i, name in enumerate(operations)}
    return {names.get(entry["name"], entry["name"]): _plain(entry, names) for entry in entries}


def _plain(value, names):
    """Returns a layer's config without what does not matter, and with other names."""
    if isinstance(value, dict):
        return {
            key: _plain(entry, names)
            for key, entry in value.items()
            if key not in _APART and not key.endswith("initializer")
        }
    if isinstance(value, list | tuple):
        return [_plain(entry, names) for entry in value]
    return names.get(value, value) if isinstance(value, str) else value
