"""The base of all layers here: constructor argument = attribute = config entry."""

import inspect

import keras


class Part(keras.layers.Layer):
    """A Keras layer whose config is read from the attributes named like its arguments.

    A part takes other parts (or any Keras layer, initializer or registered object, or a list of
    them) as constructor arguments, keeps each under the argument's name, and comes back from its
    config with the same.

    Parts that mix time steps own two more methods, from which decoding is derived:

    * `start(batch, length, **context) -> state`: the state before the first token, for `batch`
      rows and `length` slots; a (nested) dict of tensors with the batch on axis 0, each of its rows
      maybe as several entries, one after another.
    * `step(*inputs, state, cursor) -> (outputs, state)`: `call` for a chunk of tokens that
      follows the tokens already in `state`. `cursor`: int32 scalar, the slot of the chunk's first
      token, the same in every layer.

    Where tokens must be forgotten again (speculative decoding), a state tensor with an axis of
    `length` slots needs nothing: slots of zeros are empty ones. For any other state there is one
    method more:

    * `rewind(state, dropped) -> state`: forgets tokens of the last chunk, `dropped` bool `[B, T]`,
      as if they had been pads; in each row those after the tokens that stay.
    """

    def __init__(self, **kwargs):
        # A part without arguments of its own has none of Keras's either in `_argument_names`.
        super().__init__(**kwargs)

    def get_config(self):
        """Returns the constructor's arguments, JSON-serialisable."""
        config = super().get_config()
        for name in self._argument_names():
            config[name] = _serialize(getattr(self, name))
        return config

    @classmethod
    def from_config(cls, config):
        """Rebuilds the part, and the parts inside it, unbuilt."""
        return cls(**{name: _deserialize(value) for name, value in config.items()})

    def get_build_config(self):
        """Returns what `build` took, and how the layers inside that this part makes were quantised.

        Those layers are in no config: whoever makes them again does not know.
        """
        config = super().get_build_config()
        modes = {
            path: keras.saving.serialize_keras_object(layer.quantization_config)
            for path, layer in layers_within(self)
            if layer.quantization_mode is not None
        }
        return {**config, "quantized": modes} if modes else config

    def build_from_config(self, config):
        """Builds the part as it was built, and quantises as it was quantised."""
        config = dict(config)
        modes = config.pop("quantized", {})
        super().build_from_config(config)
        layers = dict(layers_within(self))
        for path, mode in modes.items():
            if layers[path].quantization_mode is None:
                layers[path].quantize(config=keras.saving.deserialize_keras_object(mode))

    def parts(self):
        """Returns the layers among the constructor's arguments."""
        values = [_listed(getattr(self, name)) for name in self._argument_names()]
        return [v for listed in values for v in listed if isinstance(v, keras.layers.Layer)]

    @classmethod
    def _argument_names(cls):
        parameters = inspect.signature(cls.__init__).parameters.values()
        return [p.name for p in parameters if p.kind is not p.VAR_KEYWORD and p.name != "self"]


def layers_within(part):
    """Yields the path of attribute names and the layer, for all layers in a part."""
    # PyTorch keeps layers apart from other attributes: `vars` would not find them.
    names = set(dir(part)) - set(dir(type(part)))
    # Keras keeps lists of its own, of the same layers, under private names.
    for name in sorted(name for name in names if not name.startswith("_")):
        values = _listed(getattr(part, name))
        for i, value in enumerate(values):
            if isinstance(value, keras.layers.Layer):
                place = f"{name}.{i}" if len(values) > 1 else name
                yield place, value
                for path, layer in layers_within(value):
                    yield f"{place}.{path}", layer


def _serialize(value):
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_serialize(item) for item in value]
    config = keras.saving.serialize_keras_object(value)
    if isinstance(config, dict):
        # The host builds its parts, so that their weights carry the host's name.
        config.pop("build_config", None)
    return config


def _deserialize(value):
    if isinstance(value, list):
        return [_deserialize(item) for item in value]
    is_object = isinstance(value, dict) and "class_name" in value
    return keras.saving.deserialize_keras_object(value) if is_object else value


def _listed(value):
    return value if isinstance(value, list | tuple) else [value]


def fresh(initializer):
    """Returns a new initializer of the same kind: one object draws the same numbers again."""
    return keras.initializers.get(initializer).clone()
