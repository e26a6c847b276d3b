import keras
import numpy as np
import pytest
from keras import ops

from keras_arch.backend import compile_function, read_slots, write_slots
from tests.layers.gradients import gradients

TENSORFLOW = keras.backend.backend() == "tensorflow"


@pytest.mark.parametrize(("shape", "axis"), [((2, 3, 7, 4), 2), ((2, 7), 1), ((7,), 0)])
@pytest.mark.parametrize(("cursor", "time"), [(0, 7), (0, 1), (3, 2), (6, 1)])
def test_writes_a_chunk_into_its_slots_and_reads_it(shape, axis, cursor, time):
    random = np.random.default_rng(0)
    cache = random.normal(size=shape).astype("float32")
    chunk = random.normal(size=(*shape[:axis], time, *shape[axis + 1 :])).astype("float32")
    expected = cache.copy()
    expected[(slice(None),) * axis + (slice(cursor, cursor + time),)] = chunk

    run = compile_function(lambda *arrays: write_slots(*arrays, axis=axis), [])
    before = cache.copy()
    found = run(cache, chunk, np.int32(cursor))
    np.testing.assert_array_equal(ops.convert_to_numpy(found), expected)
    np.testing.assert_array_equal(cache, before)
    run = compile_function(lambda *arrays: read_slots(*arrays, time, axis), [])
    np.testing.assert_array_equal(ops.convert_to_numpy(run(found, np.int32(cursor))), chunk)


def test_a_write_has_a_gradient():
    cache, chunk = np.ones((2, 5, 3), "float32"), np.ones((2, 2, 3), "float32")
    weight = np.random.default_rng(0).normal(size=cache.shape).astype("float32")

    def loss(cache, chunk):
        return ops.sum(
            write_slots(cache, chunk, ops.convert_to_tensor(2), axis=1)
            * ops.convert_to_tensor(weight)
        )

    of_cache, of_chunk = gradients(loss, [], [cache, chunk])
    np.testing.assert_array_equal(of_chunk, weight[:, 2:4])
    weight[:, 2:4] = 0.0
    np.testing.assert_array_equal(of_cache, weight)


@pytest.mark.skipif(not TENSORFLOW, reason="only TensorFlow has programs of open shapes")
@pytest.mark.parametrize(("shape", "axis"), [((2, 3, 7, 4), 2), ((2, 7), 1)])
def test_writes_where_shapes_are_open_in_core_operations(shape, axis):
    import tensorflow as tf

    spec = [None] * (axis + 1) + [*shape[axis + 1 :]]
    specs = [tf.TensorSpec(spec), tf.TensorSpec(spec), tf.TensorSpec([], tf.int32)]
    write = tf.function(lambda *x: write_slots(*x, axis=axis), input_signature=specs)
    cache = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    chunk = -np.ones((*shape[:axis], 2, *shape[axis + 1 :]), "float32")
    expected = cache.copy()
    expected[(slice(None),) * axis + (slice(4, 6),)] = -1.0
    np.testing.assert_array_equal(write(cache, chunk, 4), expected)
    operations = {node.type for node in write.get_concrete_function().graph.get_operations()}
    assert not [name for name in operations if name.startswith("Xla")]
