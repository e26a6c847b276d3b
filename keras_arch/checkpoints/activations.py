"""Activations by the names that `config.json` files give them."""

from keras_arch.layers import get_activation

#: Theirs -> ours. Of ours with several, the first is the one we write.
NAMES = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
}


def to_ours(field, name):
    """Returns our name.

    Raises:
        ValueError: If we have no such activation.
    """
    if name not in NAMES:
        raise ValueError(
            f"config.json: {field} must be one of {sorted(NAMES)}; received {field}={name!r}."
        )
    return NAMES[name]


def to_theirs(name):
    """Returns their name of ours.

    Raises:
        ValueError: If they have no such activation.
    """
    for theirs, ours in NAMES.items():
        if ours == name:
            return theirs
    raise ValueError(
        f"activation must be one of {sorted(set(NAMES.values()))} for a config.json; "
        f"received activation={name!r}."
    )


def name_of(function):
    """Returns our name of a layer's activation; the function itself where it has none."""
    named = {get_activation(name): name for name in NAMES.values()}
    return named.get(function, function)
