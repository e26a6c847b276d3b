"""Operations on tensors that Keras lacks or does another way on each backend."""

import functools

import keras
import numpy as np


def write_slots(cache, chunk, cursor, axis):
    """Returns the cache with a chunk written into its slots from `cursor` on.

    Keras's `slice_update` is on TensorFlow an operation of XLA, which servers may lack; where a
    shape is open, in a program for export, operations of TensorFlow's core do it.

    Args:
        cache: Tensor with S slots on `axis`.
        chunk: Tensor of the cache's shape, but with T slots.
        cursor: int32 scalar, at most S - T.
        axis: Python int.
    """
    if keras.backend.backend() == "torch":
        slots = keras.ops.arange(chunk.shape[axis], dtype="int64") + cursor
        return cache.index_copy(axis, slots, chunk)
    if keras.backend.backend() == "tensorflow" and None in cache.shape:
        return _write_open(cache, chunk, cursor, axis)
    start = [0] * len(cache.shape)
    start[axis] = cursor
    if keras.backend.backend() == "tensorflow":
        return _write_differentiable(cache, chunk, start)
    return keras.ops.slice_update(cache, start, chunk)


def read_slots(cache, cursor, count, axis):
    """Returns a cache's slots from `cursor` on.

    Args:
        cache: Tensor with S slots on `axis`.
        cursor: int32 scalar, at most S - count.
        count: Python int.
        axis: Python int.
    """
    if keras.backend.backend() == "torch":
        # Keras would ask for the cursor's value, which a traced program has not.
        return cache.index_select(axis, keras.ops.arange(count, dtype="int64") + cursor)
    start, shape = [0] * len(cache.shape), list(keras.ops.shape(cache))
    start[axis], shape[axis] = cursor, count
    return keras.ops.slice(cache, start, shape)


def _write_differentiable(cache, chunk, start):
    """Does what `slice_update` does; that operation of XLA has no gradient on TensorFlow."""
    import tensorflow as tf

    @tf.custom_gradient
    def write(cache, chunk):
        def gradient(upstream):
            of_cache = keras.ops.slice_update(upstream, start, tf.zeros_like(chunk))
            return of_cache, keras.ops.slice(upstream, start, chunk.shape)

        return keras.ops.slice_update(cache, start, chunk), gradient

    return write(cache, chunk)


def _write_open(cache, chunk, cursor, axis):
    import tensorflow as tf

    shape, rest = tf.shape(cache), cache.shape[axis + 1 :]
    begins = tf.range(tf.reduce_prod(shape[:axis])) * shape[axis]
    places = begins[:, None] + cursor + tf.range(tf.shape(chunk)[axis])
    rows = tf.tensor_scatter_nd_update(
        tf.reshape(cache, [-1, *rest]),
        tf.reshape(places, [-1, 1]),
        tf.reshape(chunk, [-1, *rest]),
    )
    return tf.ensure_shape(tf.reshape(rows, shape), cache.shape)


def kernel(name):
    """Returns PyTorch's own function for an operation that it has as one kernel.

    None on the other backends, whose compilers make kernels of what is written out.

    Args:
        name: Name in `torch.nn.functional`.
    """
    if keras.backend.backend() != "torch":
        return None
    import torch

    return getattr(torch.nn.functional, name)


def lookup(table, ids):
    """Returns rows of a table, `[..., D]` for ids `[...]`, with a dense gradient by the table.

    On TensorFlow the gradient of a gather alone is a list of rows, one for each occurrence, and
    Keras's optimizers square those before they add them (Keras 3.15): Adam's second moment and the
    clip norm come out wrong.

    Args:
        table: float `[V, D]`.
        ids: int `[...]`.
    """
    if keras.backend.backend() != "tensorflow":
        return keras.ops.take(table, ids, axis=0)
    import tensorflow as tf

    @tf.custom_gradient
    def gather(table):
        def gradient(upstream):
            rows = tf.reshape(upstream, [-1, table.shape[-1]])
            return tf.math.unsorted_segment_sum(rows, tf.reshape(ids, [-1]), table.shape[0])

        return tf.gather(table, ids), gradient

    return gather(table)


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
    if type(x).__name__ == "FakeTensor":  # PyTorch's, of a traced program
        return None
    try:
        return keras.ops.convert_to_numpy(x)
    except Exception as error:
        # What JAX and TensorFlow raise for a traced tensor; by name, so that neither is imported.
        if type(error).__name__ in ("TracerArrayConversionError", "NotImplementedError"):
            return None
        raise


def checked(x, ok, message, *values):
    """Returns `x`, or raises ValueError(message.format(*values)) unless `ok`.

    A compiled program raises the backend's own error with the same words, when it runs and its
    result depends on what is returned: `tf.errors.InvalidArgumentError` from a TensorFlow graph,
    `jax.errors.JaxRuntimeError` on JAX. It raises nothing where XLA compiles it for TensorFlow,
    which drops assertions, nor on JAX beside other devices (they would wait for the one that
    failed, until JAX aborts) or on an accelerator (what asking costs there is not known).

    Args:
        x: tensor of numbers.
        ok: bool scalar tensor.
        message: text with one `{}` for each value.
        values: scalar tensors.
    """
    if concrete(ok) is not None:
        if not concrete(ok):
            raise ValueError(message.format(*map(concrete, values)))
    elif keras.backend.backend() == "tensorflow":
        return _checked_tensorflow(x, ok, message, values)
    elif keras.backend.backend() == "jax":
        return _checked_jax(x, ok, message, values)
    return x


def _checked_tensorflow(x, ok, message, values):
    import tensorflow as tf

    first, *others = message.split("{}")
    parts = [part for pair in zip(values, others, strict=True) for part in pair]
    with tf.control_dependencies([tf.debugging.Assert(ok, [first, *parts])]):
        return tf.identity(x)


def _checked_jax(x, ok, message, values):
    import jax

    if jax.default_backend() != "cpu" or jax.device_count() > 1:
        return x

    def zero(ok, *values):
        # Under vmap it is asked also where all is well.
        if not ok:
            raise ValueError(message.format(*values))
        return np.zeros((), x.dtype)

    # A pure callback, whose zero is used: one with an effect takes JAX's slow path of dispatch,
    # 2 ms for a step of a small model.
    shape = jax.ShapeDtypeStruct((), x.dtype)
    ask = functools.partial(jax.pure_callback, zero, shape, ok, *values, vmap_method="sequential")
    return x + jax.lax.cond(ok, lambda: jax.numpy.zeros((), x.dtype), ask)
