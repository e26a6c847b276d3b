"""What may not reach a token: pads, later tokens, other documents, low precision."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_arch.layers import DecoderBlock, FeedForward, LayerNorm, PreNorm, Rotary, SelfAttention
from tests.layers import oracle, rows
from tests.layers.gradients import gradients
from tests.layers.test_self_attention import HEADS, OPTIONS, attention

CASES = ("multi_head", "all")


def select(x, valid):
    return ops.where(ops.convert_to_tensor(valid)[..., None], x, 0.0)


def loss_of(layer, valid, positions):
    """The sum of squares of the outputs at real tokens, a function of x."""
    positions, mask = ops.convert_to_tensor(positions), ops.convert_to_tensor(valid)

    def loss(x):
        y = ops.cast(layer(x, positions, mask), "float32")
        return ops.sum(ops.square(select(y, valid)))

    return loss


@pytest.mark.parametrize("content", [99.0, 1e30, np.nan])
@pytest.mark.parametrize("options", CASES)
def test_pads_hold_anything_and_change_nothing(options, content):
    layer, x = attention(options), rows.inputs()
    clean = np.where(rows.VALID[..., None], x, 0.0).astype("float32")
    dirty = np.where(rows.VALID[..., None], x, content).astype("float32")
    arguments = (rows.POSITIONS, rows.VALID)
    np.testing.assert_array_equal(
        rows.run(layer, dirty, *arguments), rows.run(layer, clean, *arguments)
    )
    weights = rows.run(layer.attention_weights, dirty, *arguments)
    np.testing.assert_array_equal(weights, rows.run(layer.attention_weights, clean, *arguments))
    loss = loss_of(layer, rows.VALID, rows.POSITIONS)
    expected = gradients(loss, layer.trainable_variables, [clean])
    found = gradients(loss, layer.trainable_variables, [dirty])
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (found[-1][~rows.VALID] == 0).all()
    assert all(abs(gradient).max() > 0 for gradient in found)


def block():
    layer = DecoderBlock(
        PreNorm(SelfAttention(HEADS, 4, 2, rotary=Rotary()), LayerNorm()),
        PreNorm(FeedForward(16), LayerNorm()),
    )
    layer.build((None, None, rows.WIDTH))
    return rows.randomize(layer)


@pytest.mark.parametrize("content", [99.0, 1e30, np.nan])
def test_pads_change_no_real_token_of_a_block(content):
    layer, x = block(), rows.inputs()
    dirty = np.where(rows.VALID[..., None], x, content).astype("float32")
    arguments = (rows.POSITIONS, rows.VALID)
    found, expected = (rows.run(layer, each, *arguments)[rows.VALID] for each in (dirty, x))
    np.testing.assert_array_equal(found, expected)


def test_pads_change_no_gradient_of_a_block():
    layer, x = block(), rows.inputs()
    dirty = np.where(rows.VALID[..., None], x, 99.0).astype("float32")
    loss = loss_of(layer, rows.VALID, rows.POSITIONS)
    found, expected = (gradients(loss, layer.trainable_variables, [each]) for each in (dirty, x))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_a_row_of_pads_is_finite_and_touches_no_other_row():
    layer, x = block(), rows.inputs()
    valid = rows.VALID.copy()
    valid[1] = False
    positions = rows.POSITIONS.copy()
    positions[1] = 0
    others = [0, 2, 3]
    whole = rows.run(layer, x, positions, valid)
    assert np.isfinite(whole).all()
    without = rows.run(layer, x[others], positions[others], valid[others])
    np.testing.assert_allclose(whole[others], without, atol=1e-6)
    found = gradients(loss_of(layer, valid, positions), layer.trainable_variables, [x])
    expected = gradients(
        loss_of(layer, valid[others], positions[others]), layer.trainable_variables, [x[others]]
    )
    assert (found[-1][1] == 0).all()
    found[-1] = found[-1][others]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("options", OPTIONS)
def test_later_tokens_leave_earlier_outputs_bit_equal(options):
    # Dynamic NTK is causal up to its context only.
    time = 3 if options == "dynamic_ntk" else rows.TIME
    layer, x = attention(options), rows.inputs()[:, :time]
    changed = x.copy()
    changed[:, time - 2 :] = rows.normal(rows.BATCH, 2, rows.WIDTH, seed=9)
    arguments = (rows.POSITIONS[:, :time], rows.VALID[:, :time])
    found, other = (rows.run(layer, each, *arguments) for each in (x, changed))
    np.testing.assert_array_equal(found[:, : time - 2], other[:, : time - 2])
    real = rows.VALID[:, time - 1]
    assert (abs(found - other)[real, time - 1].max(axis=-1) > 1e-3).all()


def test_dropout_and_training_keep_the_causal_mask():
    layer, x = attention(dropout=0.3), rows.inputs()
    changed = x.copy()
    changed[:, 5] = 7.0
    outputs = []
    for each in (x, changed):
        keras.utils.set_random_seed(3)
        layer.drop.seed_generator.state.assign([3, 0])
        outputs.append(rows.run(layer, each, rows.POSITIONS, rows.VALID, training=True))
    np.testing.assert_array_equal(outputs[0][:, :5], outputs[1][:, :5])


def test_other_documents_change_nothing():
    layer, x = attention("all"), rows.inputs()
    changed = np.where((rows.SEGMENTS == 0)[..., None], x, 5.0).astype("float32")
    arguments = (rows.SEGMENT_POSITIONS, rows.VALID)
    found, other = (
        rows.run(layer, each, *arguments, segment_ids=rows.SEGMENTS) for each in (x, changed)
    )
    np.testing.assert_array_equal(found[rows.SEGMENTS == 0], other[rows.SEGMENTS == 0])


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision_is_finite_and_near_the_reference(policy):
    keras.config.set_dtype_policy(policy)
    layer, x = attention("all"), rows.inputs()
    valid = rows.VALID.copy()
    valid[1] = False
    y = layer(
        ops.convert_to_tensor(x),
        ops.convert_to_tensor(rows.POSITIONS),
        ops.convert_to_tensor(valid),
    )
    assert keras.backend.standardize_dtype(y.dtype) == policy.removeprefix("mixed_")
    weights = [rows.to_numpy(variable.value) for variable in layer.variables]
    expected, _ = oracle.self_attention(single_precision(weights), x, rows.POSITIONS, valid)
    tolerance = 2e-2 if "bfloat16" not in policy else 1e-1
    np.testing.assert_allclose(rows.to_numpy(y), expected, atol=tolerance)
    for gradient in gradients(
        loss_of(layer, valid, rows.POSITIONS), layer.trainable_variables, [x]
    ):
        assert np.isfinite(gradient).all()


def single_precision(weights):
    keras.config.set_dtype_policy("float32")
    layer = attention("all")
    layer.set_weights(weights)
    return layer


def test_the_softmax_is_float32_in_bfloat16():
    # Equal scores over 1, 2, .. 6 keys: 1/3, 1/5 and 1/6 are no bfloat16 numbers (error 4e-4).
    keras.config.set_dtype_policy("mixed_bfloat16")
    layer = attention()
    layer.query_key_value.set_weights(
        [np.zeros_like(w) for w in layer.query_key_value.get_weights()]
    )
    valid = np.ones_like(rows.VALID)
    positions = np.broadcast_to(np.arange(rows.TIME, dtype="int32"), valid.shape)
    weights = rows.run(layer.attention_weights, rows.inputs(), positions, valid)
    expected = np.tri(rows.TIME) / np.arange(1, rows.TIME + 1)[:, None]
    np.testing.assert_allclose(weights, np.broadcast_to(expected, weights.shape), atol=1e-7)


def test_an_overflowing_score_bias_stays_finite_in_float16():
    # -6e4 twice is beyond float16.
    keras.config.set_dtype_policy("mixed_float16")
    layer = attention()
    bias = np.full((1, HEADS, rows.TIME, rows.TIME), -6e4, "float16")
    found = rows.run(layer, rows.inputs(), rows.POSITIONS, rows.VALID, bias=bias)
    assert np.isfinite(found).all()


def test_distant_positions_differ_in_bfloat16():
    # bfloat16 has no number between 4096 and 4128.
    keras.config.set_dtype_policy("mixed_bfloat16")
    layer, x = attention(rotary=Rotary), rows.inputs()
    valid = np.ones_like(rows.VALID)
    found = []
    for second in (4096, 4097):
        positions = np.full(valid.shape, 4096, "int32")
        positions[:, 1] = second
        found.append(rows.run(layer.attention_weights, x, positions, valid))
    assert abs(found[0] - found[1])[:, :, 1].max() > 1e-2
