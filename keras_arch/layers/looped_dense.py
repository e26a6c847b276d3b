"""Dense layers inside a loop of `backend.recur`, which wants to know what it multiplies by."""

from keras import ops, tree


def can_loop(layers):
    """Whether the nested layers multiply by their kernels as they are: none is quantised."""
    return all(layer.quantization_mode is None for layer in tree.flatten(layers))


def kernels(layers):
    """Returns the kernels of nested `keras.layers.Dense`, in their compute types."""
    return tree.map_structure(lambda layer: ops.cast(layer.kernel, layer.compute_dtype), layers)


def biases(layers):
    """Returns the biases of nested `keras.layers.Dense`, a list; those that have none left out."""
    return [
        ops.cast(layer.bias, layer.compute_dtype)
        for layer in tree.flatten(layers)
        if layer.use_bias
    ]


def calls(layers, multiply, biases):
    """Returns functions that do what the nested layers do, from what the loop hands out.

    Args:
        layers: Nested `keras.layers.Dense`.
        multiply: Nested functions, made from `kernels`.
        biases: As `biases` returned, through the loop's shared tensors.
    """
    biases = iter(biases)
    made = [
        _call(layer, product, next(biases) if layer.use_bias else None)
        for layer, product in zip(tree.flatten(layers), tree.flatten(multiply), strict=True)
    ]
    return tree.pack_sequence_as(layers, made)


def _call(layer, product, bias):
    def run(x):
        y = product(ops.cast(x, layer.compute_dtype))
        return layer.activation(y if bias is None else y + bias)

    return run
