import keras
import numpy as np
import pytest
from keras import ops

from keras_arch.layers import (
    GRU,
    LSTM,
    AdditiveAttention,
    BahdanauDecoder,
    LocalAttention,
    LocationAttention,
    LuongDecoder,
    MultiplicativeAttention,
    looped_dense,
)
from tests.layers import rows, sources
from tests.layers.gradients import gradients
from tests.references import attention_decoder, recurrent

WIDTH = 4


def lstms():
    return [LSTM(5, name="bottom"), LSTM(3, name="top")]


#: Name -> function that makes a decoder.
DECODERS = {
    "bahdanau": lambda: BahdanauDecoder(AdditiveAttention(7), [GRU(5)], WIDTH),
    "bahdanau coverage": lambda: BahdanauDecoder(
        AdditiveAttention(7, coverage=True), lstms(), WIDTH
    ),
    "bahdanau location": lambda: BahdanauDecoder(LocationAttention(6), [GRU(5)], WIDTH),
    "luong": lambda: LuongDecoder(MultiplicativeAttention(True), lstms(), WIDTH),
    "luong not fed": lambda: LuongDecoder(LocationAttention(6), lstms(), WIDTH, False),
    "luong coverage": lambda: LuongDecoder(
        AdditiveAttention(7, coverage=True), [GRU(5)], WIDTH, False
    ),
}
every_decoder = pytest.mark.parametrize("make", DECODERS.values(), ids=DECODERS.keys())


def built(make):
    layer = make()
    layer.build((None, None, rows.WIDTH), (None, None, sources.WIDTH))
    return rows.randomize(layer)


def arguments():
    """x, with NaN at the pads; valid; memory; its validity."""
    x = np.where(rows.VALID[..., None], rows.inputs(), np.nan).astype("float32")
    return x, rows.VALID, sources.memory().astype("float32"), sources.VALID


def initial_state(layer):
    names = [name for cell in layer.cells for name in cell.state_names]
    widths = [cell.width for cell in layer.cells for _ in cell.state_names]
    return [rows.normal(rows.BATCH, w, seed=20 + i) for i, w in enumerate(widths[: len(names)])]


def float64(layer, names):
    return dict(zip(names, (np.array(w, "float64") for w in layer.get_weights()), strict=False))


def reference_parts(layer):
    weigh = sources.weigher(layer.attention)
    cells = [
        float64(cell, ("kernel", "recurrent_kernel", "bias", "recurrent_bias"))
        for cell in layer.cells
    ]
    step = [{1: recurrent.gru, 2: recurrent.lstm}[len(cell.state_names)] for cell in layer.cells]
    fed_kernel = None
    if hasattr(layer, "fed_projection"):
        fed_kernel = np.array(layer.fed_projection.get_weights()[0], "float64")
    kernel, bias = (np.array(w, "float64") for w in layer.output_projection.get_weights())

    def run_weigh(x, h, vectors, coverage):
        query = np.concatenate([x, h]) if layer.attention.reads_inputs else h
        seen = (coverage,) if layer.attention.reads_coverage else ()
        return np.array(weigh(query, vectors, *seen))

    def run_cells(x, fed, states):
        new = []
        for i, (weights, state) in enumerate(zip(cells, states, strict=True)):
            projected = x @ weights["kernel"] + weights["bias"]
            if i == 0 and fed is not None:
                projected = projected + fed @ fed_kernel
            product = state[0] @ weights["recurrent_kernel"]
            new.append(step[i](projected, product, state, weights))
            x = new[-1][0]
        return new

    def output(context, h):
        return np.tanh(np.concatenate([context, h]) @ kernel + bias)

    return {"weigh": run_weigh, "cells": run_cells, "output": output}


def expected(layer, states):
    parts = reference_parts(layer)

    def first_state(b, n):
        values = [s[b].astype("float64") for s in states]
        cells = [tuple(values.pop(0) for _ in cell.state_names) for cell in layer.cells]
        return (cells, np.zeros(n), np.zeros(WIDTH))[: 2 if is_bahdanau else 3]

    is_bahdanau = isinstance(layer, BahdanauDecoder)

    def step(x, vectors, state):
        if is_bahdanau:
            return attention_decoder.bahdanau(x, vectors, state, parts)
        return attention_decoder.luong(x, vectors, state, parts, layer.input_feeding)

    return attention_decoder.run(step, *arguments(), first_state, WIDTH)


@every_decoder
def test_equals_the_reference(make):
    layer = built(make)
    inputs = [ops.convert_to_tensor(x) for x in arguments()]
    states = [ops.convert_to_tensor(s) for s in initial_state(layer)]
    output, weights = expected(layer, initial_state(layer))
    found = rows.to_numpy(layer(*inputs, initial_state=states))
    np.testing.assert_allclose(found[rows.VALID], output[rows.VALID], atol=1e-5)
    found = rows.to_numpy(layer.attention_weights(*inputs, initial_state=states))
    np.testing.assert_allclose(found, weights, atol=1e-5)


@every_decoder
def test_steps_equal_the_whole_and_freeze_at_pads(make):
    layer = built(make)
    x, valid, memory, memory_valid = (ops.convert_to_tensor(a) for a in arguments())
    whole = rows.to_numpy(layer(x, valid, memory, memory_valid))
    for chunks in ((1, 3, 2), (6,)):
        state = layer.start(rows.BATCH, rows.TIME, memory=memory, memory_valid=memory_valid)
        found, begin = [], 0
        for size in chunks:
            part = slice(begin, begin + size)
            output, state = layer.step(x[:, part], valid[:, part], state=state, cursor=begin)
            found.append(rows.to_numpy(output))
            begin += size
        found = np.concatenate(found, axis=1)
        np.testing.assert_allclose(found[rows.VALID], whole[rows.VALID], atol=1e-5)
    nothing = ops.zeros((rows.BATCH, 1), "bool")
    _, after = layer.step(x[:, :1], nothing, state=state, cursor=begin)
    for old, new in zip(keras.tree.flatten(state), keras.tree.flatten(after), strict=True):
        np.testing.assert_array_equal(rows.to_numpy(new), rows.to_numpy(old))


#: As few as show every kind of loop: JAX compiles each of them twice.
LOOPS = {
    "bahdanau coverage": lambda: BahdanauDecoder(
        AdditiveAttention(7, normalised=True, use_bias=True, coverage=True), lstms(), WIDTH
    ),
    "bahdanau dot": lambda: BahdanauDecoder(
        MultiplicativeAttention(), [LSTM(sources.WIDTH, normalise=True)], WIDTH
    ),
    "luong local": lambda: LuongDecoder(LocalAttention(2, 3, general=True), [GRU(5)], WIDTH),
}


@pytest.mark.skipif(keras.backend.backend() == "torch", reason="its loop is the plain one")
@pytest.mark.parametrize("make", LOOPS.values(), ids=LOOPS.keys())
def test_gradients_equal_those_of_the_plain_loop(make, monkeypatch):
    layer = built(make)
    x, valid, memory, memory_valid = arguments()

    def loss(x, memory):
        output = layer(x, valid, memory, memory_valid)
        return ops.sum(ops.where(valid[..., None], output, 0.0) ** 2)

    inputs = [np.nan_to_num(x), np.nan_to_num(memory)]
    found = gradients(loss, layer.trainable_variables, inputs)
    monkeypatch.setattr(looped_dense, "can_loop", lambda layers: False)
    wanted = gradients(loss, layer.trainable_variables, inputs)
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_a_quantised_decoder_runs_whole_as_step_by_step():
    layer = built(DECODERS["luong"])
    before = rows.to_numpy(layer(*map(ops.convert_to_tensor, arguments())))
    config = keras.quantizers.Int8QuantizationConfig(activation_quantizer=None)
    for dense in (layer.fed_projection, layer.output_projection):
        dense.quantize(config=config)
    x, valid, memory, memory_valid = (ops.convert_to_tensor(a) for a in arguments())
    whole = rows.to_numpy(layer(x, valid, memory, memory_valid))[rows.VALID]
    assert np.abs(whole - before[rows.VALID]).max() > 0
    np.testing.assert_allclose(whole, before[rows.VALID], atol=0.05)
    state, found = layer.start(rows.BATCH, 1, memory=memory, memory_valid=memory_valid), []
    for t in range(rows.TIME):
        part = slice(t, t + 1)
        output, state = layer.step(x[:, part], valid[:, part], state=state, cursor=t)
        found.append(rows.to_numpy(output))
    found = np.concatenate(found, axis=1)
    np.testing.assert_allclose(found[rows.VALID], whole, atol=1e-5)


@pytest.mark.parametrize("name", ["bahdanau coverage", "luong"])
def test_beams_share_a_memory_of_fewer_rows(name):
    layer = built(DECODERS[name])
    x, valid, memory, memory_valid = (ops.convert_to_tensor(a) for a in arguments())
    x, valid = ops.nan_to_num(x), ops.ones_like(valid)
    alone = layer.start(rows.BATCH, 1, memory=memory, memory_valid=memory_valid)
    # Rows 0 and 1 are beams of source 0, rows 2 and 3 of source 2.
    twice = [ops.take(m, [0, 0, 2, 2], axis=0) for m in (memory, memory_valid)]
    repeated = layer.start(rows.BATCH, 1, memory=twice[0], memory_valid=twice[1])
    kept = {k: ops.take(v, [0, 2], axis=0) for k, v in alone["memory"].items()}
    shared = {**repeated, "memory": kept}
    for t in range(2):
        step = x[:, t : t + 1], valid[:, t : t + 1]
        expected, repeated = layer.step(*step, state=repeated, cursor=t)
        found, shared = layer.step(*step, state=shared, cursor=t)
        np.testing.assert_allclose(rows.to_numpy(found), rows.to_numpy(expected), atol=1e-6)
    assert shared["memory"]["value"].shape[0] == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BahdanauDecoder(AdditiveAttention(3), []), r"cells=\[\]"),
        (
            lambda: LuongDecoder(AdditiveAttention(3), [LSTM(3, reverse=True, name="back")]),
            "run forward; received 'back' with reverse=True",
        ),
    ],
)
def test_bad_cells_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_an_initial_state_of_another_number_is_named():
    layer = built(DECODERS["luong"])
    inputs = [ops.convert_to_tensor(a) for a in arguments()]
    with pytest.raises(ValueError, match=r"initial_state must hold 4 tensors.*received 1"):
        layer(*inputs, initial_state=[ops.zeros((rows.BATCH, 5))])
