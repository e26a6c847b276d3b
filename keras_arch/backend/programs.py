"""Programs: functions and loops of tensors, compiled the way of each backend."""

import keras


def compile_function(function, variables):
    """Compiles a function of tensors, for the shapes of its first call, that reads Keras variables.

    Args:
        function: Takes and returns (nested) tensors; only reads `variables`.
        variables: The Keras variables it reads. They are handed to the program at each call, never
            baked into it, so it follows their values.

    Returns:
        A function of (nested) arrays that runs `function` as one program: `tf.function` with XLA,
        `jax.jit`, or PyTorch without gradients.
    """
    if keras.backend.backend() == "tensorflow":
        return _compile_tensorflow(function)
    if keras.backend.backend() == "jax":
        return _compile_jax(function, variables)
    return _compile_torch(function)


def _compile_tensorflow(function):
    import tensorflow as tf

    program = None

    def call(*arguments):
        nonlocal program
        arguments = keras.tree.map_structure(tf.convert_to_tensor, arguments)
        if program is None:
            specs = keras.tree.map_structure(lambda a: tf.TensorSpec(a.shape, a.dtype), arguments)
            compiled = tf.function(function, jit_compile=True, autograph=False)
            # One concrete function: tf.function would warn of programs made in a loop.
            program = compiled.get_concrete_function(*specs)
        return program(*arguments)

    return call


def _compile_jax(function, variables):
    import jax

    @jax.jit
    def program(values, *arguments):
        with keras.StatelessScope(state_mapping=list(zip(variables, values, strict=True))):
            return function(*arguments)

    return lambda *arguments: program([v.value for v in variables], *arguments)


def _compile_torch(function):
    import torch

    @torch.no_grad()
    def call(*arguments):
        return function(*keras.tree.map_structure(keras.ops.convert_to_tensor, arguments))

    return call


def compile_loop(loop, variables):
    """Compiles a loop, as `compile_function` does a function.

    Args:
        loop: An object with four functions of tensors: `begin(*arguments) -> state`, a tuple;
            `running(*state) -> bool`; `body(*state) -> state`; and `finish(*state) -> outputs`.
            They know of each other's tensors only what is in the state.
        variables: The Keras variables they read.

    Returns:
        A function from (nested) arrays, the arguments of `begin`, to the outputs of `finish`.
    """
    if keras.backend.backend() == "torch":
        from keras_arch.backend.torch_program import TorchLoop

        return TorchLoop(loop, variables)
    return compile_function(lambda *arguments: run_loop(loop, *arguments), variables)


def run_loop(loop, *arguments):
    """Runs the loop of `compile_loop` inside a program."""
    return loop.finish(*keras.ops.while_loop(loop.running, loop.body, loop.begin(*arguments)))
