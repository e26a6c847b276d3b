"""Loops over time: what recurrent layers run on, differentiable on every backend.

Keras's own `scan` wants outputs shaped like the state on TensorFlow, and fails there under XLA and
where the number of steps is open (Keras 3.15).
"""

import keras
from keras import ops, tree


def scan(body, state, inputs, reverse=False):
    """Runs a function over the steps of its inputs, handing a state from each to the next.

    It runs compiled and not, is differentiable in both (on TensorFlow under XLA too), and exports
    with T and B open.

    Args:
        body: Function `(state, input) -> (state, output)` of nested tensors; `input` is one step of
            `inputs`, `[B, ...]`. The new state has the shapes and types of the old one.
        state: Nested tensors.
        inputs: Nested tensors `[T, B, ...]`, time first; T is at least 1.
        reverse: Whether the last step comes first. Outputs stand where their inputs do.

    Returns:
        The last state, and the outputs, nested `[T, B, ...]`.
    """
    inputs = tree.map_structure(ops.convert_to_tensor, inputs)
    if tree.flatten(inputs)[0].shape[0] == 1:
        # A decoding step: no loop, so that none is in its program.
        state, output = body(state, tree.map_structure(lambda x: x[0], inputs))
        return state, tree.map_structure(lambda x: x[None], output)
    if keras.backend.backend() == "jax":
        import jax

        return jax.lax.scan(body, state, inputs, reverse=reverse)
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        if not tf.executing_eagerly():
            return _scan_graph(body, state, inputs, reverse)
    return _scan_steps(body, state, inputs, reverse)


def _scan_steps(body, state, inputs, reverse):
    """Runs the steps one by one: without a program there is no loop to speak of."""
    times = range(tree.flatten(inputs)[0].shape[0])
    outputs = []
    for t in reversed(times) if reverse else times:
        state, output = body(state, tree.map_structure(lambda x: x[t], inputs))  # noqa: B023
        outputs.append(output)
    if reverse:
        outputs.reverse()
    return state, tree.map_structure(lambda *steps: ops.stack(steps), *outputs)


def _scan_graph(body, state, inputs, reverse):
    import tensorflow as tf

    first = tree.flatten(inputs)[0]
    # XLA needs the number, to make room for what the gradient will read.
    time = tf.shape(first)[0] if first.shape[0] is None else first.shape[0]
    reads = tree.map_structure(lambda x: _array(x.dtype, x.shape[1:], time).unstack(x), inputs)
    new_state, output = _specs(body, state, inputs)
    writes = [_array(x.dtype, x.shape, time) for x in tree.flatten(output)]

    def step(count, state, writes):
        t = time - 1 - count if reverse else count
        state, output = body(state, tree.map_structure(lambda array: array.read(t), reads))
        pairs = zip(writes, tree.flatten(output), strict=True)
        return count + 1, state, [array.write(t, x) for array, x in pairs]

    _, state, writes = tf.while_loop(
        lambda count, *_: count < time,
        step,
        (tf.constant(0), state, writes),
        shape_invariants=(
            tf.TensorShape([]),
            tree.map_structure(_common_shape, state, new_state),
            [tf.TensorShape(None) for _ in writes],
        ),
        maximum_iterations=time,
    )
    return state, tree.pack_sequence_as(output, [array.stack() for array in writes])


def _array(dtype, shape, time):
    import tensorflow as tf

    return tf.TensorArray(dtype, time, element_shape=shape)


def _specs(body, state, inputs):
    """Returns what the body will return, with shapes and types but no values."""
    import tensorflow as tf

    def once():
        return body(state, tree.map_structure(lambda x: x[0], inputs))

    return tf.function(once, autograph=False).get_concrete_function().structured_outputs


def _common_shape(old, new):
    import tensorflow as tf

    sizes = zip(old.shape, new.shape, strict=True)
    return tf.TensorShape([a if a == b else None for a, b in sizes])
