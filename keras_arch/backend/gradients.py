"""Gradients of functions of flat lists of tensors: given by hand, and taken inside a program.

For the backends that compile: TensorFlow and JAX.
"""

import keras


def with_gradient(forward, backward, arguments):
    """Calls a function whose gradient is another function's.

    Args:
        forward: Function of the arguments: `-> (outputs, kept)`, a list of float tensors, and what
            `backward` reads, nested. It reads no other tensors.
        backward: Function `(kept, upstream) -> gradients`, one for each argument, None for those
            that are not float; `upstream` has one tensor for each output.
        arguments: List of tensors.

    Returns:
        The outputs.
    """
    call = {"tensorflow": _call_tensorflow, "jax": _call_jax}[keras.backend.backend()]
    return call(forward, backward, arguments)


def _call_tensorflow(forward, backward, arguments):
    import tensorflow as tf

    @tf.custom_gradient
    def run(*arguments):
        outputs, kept = forward(*arguments)
        return outputs, lambda *upstream: backward(kept, upstream)

    return run(*arguments)


def _call_jax(forward, backward, arguments):
    import jax

    @jax.custom_vjp
    def run(*arguments):
        return forward(*arguments)[0]

    run.defvjp(forward, lambda kept, upstream: tuple(backward(kept, upstream)))
    return run(*arguments)


def pull_back(function, arguments, upstream):
    """Returns the gradients of a function by its arguments, where those of its outputs are known.

    Args:
        function: Function of the arguments, to a list of float tensors.
        arguments: List of float tensors.
        upstream: List of tensors, one for each output.
    """
    if keras.backend.backend() == "jax":
        import jax

        return jax.vjp(function, *arguments)[1](upstream)
    import tensorflow as tf

    # Two arguments may be one tensor, for which the tape has one gradient.
    arguments = [tf.identity(argument) for argument in arguments]
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(arguments)
        outputs = function(*arguments)
    return tape.gradient(outputs, arguments, upstream, tf.UnconnectedGradients.ZERO)
