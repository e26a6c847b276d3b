import dataclasses
import gc
import resource
import weakref
from pathlib import Path

import keras
import numpy as np
import pytest

import keras_arch as ka
from keras_arch.backend import compile_function
from keras_arch.generation import RepetitionPenalty, Sample, TopK, programs
from keras_arch.generation.programs import Programs, prepare
from tests.contracts.tiny import CONFIGS, build

ROWS = [[1, 2, 3, 4, 5], [7], [9, 8, 7]]


def small(seed=0, **shape):
    return build(dataclasses.replace(CONFIGS["gpt2"], layers=1, **shape), seed=seed)


def test_a_key_is_compiled_once_and_the_oldest_goes_first():
    made = []
    few = Programs(lambda f, _: made.append(f) or f, limit=2)

    def get(key):
        return few.get(key, lambda x: x + key, [])

    assert [get(key)(10) for key in (1, 2, 1)] == [11, 12, 11]
    assert len(made) == 2
    get(3)
    get(2)
    assert len(made) == 3
    assert get(1)(10) == 11
    assert len(made) == 4


def test_other_variables_need_other_programs():
    few = Programs(compile_function)

    def double(number):
        variable = keras.Variable(np.float32(number))
        return float(few.get("double", lambda x: x * variable, [variable])(np.float32(2.0)))

    assert [double(1.0), double(2.0)] == [2.0, 4.0]


def test_a_model_is_prepared_once_and_beside_each_other_model():
    model, other, third = small(), small(), small()
    prepared = prepare(model)
    assert prepare(model) is prepared
    assert prepare(other) is not prepared
    assert prepared.loops_with(other) is prepared.loops_with(other)
    assert prepared.loops_with(other) is not prepared.loops_with(third)
    gone = weakref.ref(other)
    del other
    gc.collect()
    assert gone() is None


def test_lengths_of_one_bucket_share_a_program(traces):
    model = small()
    for length in range(6, 11):
        ka.generate(model, [[1] * length], max_new_tokens=length)
    assert len(traces) == 1
    ka.generate(model, [[1] * 3] * 2, 5)
    assert len(traces) == 2


def test_equal_samplers_share_a_program(traces):
    model = small()
    for k in (3, 3, 4):
        ka.generate(model, ROWS, 4, Sample(RepetitionPenalty(1.2), TopK(k)), stop_ids=[k])
    assert len(traces) == 2


@pytest.mark.skipif(keras.backend.backend() == "torch", reason="reads TensorFlow and JAX programs")
def test_no_weight_is_a_constant_of_the_program(monkeypatch):
    made = []
    compile_loop = programs.compile_loop

    def spy(*arguments):
        made.append(compile_loop(*arguments))
        return made[-1]

    monkeypatch.setattr(programs, "compile_loop", spy)
    model = small(vocabulary_size=50_000)
    sampler = Sample(RepetitionPenalty(1.2), TopK(5))
    ka.generate(model, [[1, 2]], 4, sampler)
    arrays = [np.zeros((1, 16), "int32"), np.ones((1, 16), "bool"), np.int32(4)]
    arrays += [np.zeros(0, "int32"), np.zeros(2, "int32")]
    # The embedding's table has 50,000 x 16 numbers.
    assert _constant_bytes(lambda *a: made[0](*a[:4], {}, a[4]), arrays) < 50_000 * 16


def _constant_bytes(program, arrays):
    """Counts what a compiled function holds besides its arguments and variables."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        specs = [tf.TensorSpec(np.shape(array), array.dtype) for array in arrays]
        traced = tf.function(program, autograph=False).get_concrete_function(*specs)
        nodes = [*traced.graph.as_graph_def().node]
        nodes += [n for f in traced.graph.as_graph_def().library.function for n in f.node_def]
        assert any("While" in node.op for node in nodes)
        return sum(node.ByteSize() for node in nodes if node.op == "Const")
    import jax

    jaxpr = jax.make_jaxpr(program)(*arrays)
    inner = [e.params["jaxpr"] for e in jaxpr.eqns if "jaxpr" in e.params]
    assert inner
    return sum(np.asarray(constant).nbytes for each in inner for constant in each.consts)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux' own count")
def test_memory_does_not_grow():
    model = small()

    def resident():
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    for call in range(250):
        if call == 50:
            before = resident()
        ka.generate(model, [[1]], 1)
    assert resident() - before < 5e6


def test_programs_follow_the_weights(traces):
    model, other = small(seed=1), small(seed=2)
    ka.generate(model, ROWS, 10)
    seen = len(traces)
    model.set_weights(other.get_weights())
    changed = ka.generate(model, ROWS, 10)
    if keras.backend.backend() != "torch":
        assert len(traces) == seen
    np.testing.assert_array_equal(changed.token_ids, ka.generate(other, ROWS, 10).token_ids)


def test_programs_go_with_their_model():
    model = small()
    ka.generate(model, ROWS, 2)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
