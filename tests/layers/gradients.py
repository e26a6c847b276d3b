"""Gradients on any backend."""

import keras
from keras import ops


def gradients(loss, variables, inputs=()):
    """Returns the gradients of a scalar as numpy arrays, those of the variables first.

    Args:
        loss: Function of the inputs (as tensors) that reads the variables; returns a scalar.
        variables: Keras variables.
        inputs: Float numpy arrays.
    """
    name = keras.backend.backend()
    found = {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}[name](loss, variables, inputs)
    return [ops.convert_to_numpy(ops.cast(gradient, "float32")) for gradient in found]


def _tensorflow(loss, variables, inputs):
    import tensorflow as tf

    inputs = [tf.convert_to_tensor(value) for value in inputs]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        value = loss(*inputs)
    sources = [variable.value for variable in variables] + inputs
    return [tf.convert_to_tensor(gradient) for gradient in tape.gradient(value, sources)]


def _jax(loss, variables, inputs):
    import jax

    def pure(values, inputs):
        with keras.StatelessScope(state_mapping=list(zip(variables, values, strict=True))):
            return loss(*inputs)

    values = [variable.value for variable in variables]
    of_variables, of_inputs = jax.grad(pure, argnums=(0, 1))(values, list(inputs))
    return [*of_variables, *of_inputs]


def _torch(loss, variables, inputs):
    import torch

    inputs = [torch.tensor(value, requires_grad=True) for value in inputs]
    sources = [variable.value for variable in variables] + inputs
    return torch.autograd.grad(loss(*inputs), sources)
