"""The one core file that touches a backend's own API: what Keras does not offer for all of them."""

import keras


def compile_function(function, variables):
    """Compiles a function of tensors, for the shapes of its first call, that reads Keras variables.

    Args:
        function: Takes and returns (nested) tensors; only reads `variables`.
        variables: The Keras variables it reads. They are handed to the program at each call, never
            baked into it, so it follows their values.

    Returns:
        A function of arrays that runs `function` as one program: `tf.function` with XLA,
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
        arguments = [tf.convert_to_tensor(argument) for argument in arguments]
        if program is None:
            specs = [tf.TensorSpec(a.shape, a.dtype) for a in arguments]
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
        return function(*map(keras.ops.convert_to_tensor, arguments))

    return call


def sum_over_replicas(x):
    """Returns the sum of a scalar over the replicas of a `tf.distribute` strategy.

    Elsewhere a batch is one (global) array, whose sums are global already: returns `x`.
    """
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        context = tf.distribute.get_replica_context()
        if context is not None and context.num_replicas_in_sync > 1:
            return context.all_reduce(tf.distribute.ReduceOp.SUM, x)
    return x


def concrete(x):
    """Returns `x` as a numpy array, or None while a program that will compute it is traced."""
    try:
        return keras.ops.convert_to_numpy(x)
    except Exception as error:
        # What JAX and TensorFlow raise for a traced tensor; by name, so that neither is imported.
        if type(error).__name__ in ("TracerArrayConversionError", "NotImplementedError"):
            return None
        raise
