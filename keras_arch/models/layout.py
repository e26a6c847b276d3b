"""Which variable of a Transformer lies how on several devices (JAX, `keras.distribution`)."""

import keras

from keras_arch.models.outline import outline

#: The end of a variable's path -> the axis that is split.
SPLIT_AXES = {
    "query_key_value/kernel": 1,
    "query_key_value/bias": 0,
    "query/kernel": 1,
    "query/bias": 0,
    "key_value/kernel": 1,
    "key_value/bias": 0,
    "output_projection/kernel": 0,
    "up/kernel": 1,
    "up/bias": 0,
    "down/kernel": 0,
}
#: The same of what is split where the vocabulary divides, and else whole on every device.
VOCABULARY_AXES = {"tokens/table": 0, "projection/kernel": 1}


def layout_map(config, device_mesh, axis="model"):
    """Returns the layouts of a Transformer's variables for `keras.distribution.ModelParallel`.

    Of a sublayer's two matrices the first is split by columns, the second by rows, so that heads
    and hidden units are spread and what a sublayer adds to the stream is a sum over the devices
    (Shoeybi et al. 2019, section 3); the table of tokens and the head by tokens, where the devices
    divide the vocabulary. All else is whole on every device. An optimizer's moments lie as their
    variables do.

    Queries, keys and values come from one matrix, as do gate and value of a gated network: the
    columns that a device has of it are not its heads'. XLA then sends activations to where they
    are needed, more than Megatron does; what comes out is the same.

        devices = keras.distribution.list_devices()
        mesh = keras.distribution.DeviceMesh((2, 4), ("batch", "model"), devices)
        layouts = ka.models.layout_map(config, mesh)
        with keras.distribution.ModelParallel(layout_map=layouts).scope():
            model = ka.models.gpt2(config)

    Args:
        config: Of a Transformer in the catalog.
        device_mesh: `keras.distribution.DeviceMesh`.
        axis: Name of the mesh's axis that the model is split over.

    Raises:
        ValueError: If the mesh has no such axis, its devices do not divide the heads or the hidden
            width, or the model is no Transformer.
    """
    if axis not in device_mesh.axis_names:
        raise ValueError(
            f"axis must be one of the mesh's {device_mesh.axis_names}; received axis={axis!r}."
        )
    devices = device_mesh.shape[device_mesh.axis_names.index(axis)]
    _check_divides(config, devices)
    layouts = keras.distribution.LayoutMap(device_mesh)
    for variable in outline(config).trainable_variables:
        end = "/".join(variable.path.split("/")[-2:])
        split = SPLIT_AXES.get(end)
        if split is None and config.vocabulary_size % devices == 0:
            split = VOCABULARY_AXES.get(end)
        if split is not None:
            names = [None] * len(variable.shape)
            names[split] = axis
            layouts[variable.path] = tuple(names)
    return layouts


def _check_divides(config, devices):
    if not hasattr(config, "heads"):
        raise ValueError(f"config must be that of a Transformer; received config={config!r}.")
    for name in ("heads", "key_value_heads", "hidden_width"):
        value = getattr(config, name, devices)
        if value % devices:
            raise ValueError(
                f"the devices of the model's axis must divide {name}; received {devices} devices, "
                f"{name}={value}."
            )
