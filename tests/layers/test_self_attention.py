import keras
import numpy as np
import pytest

from keras_arch.layers import (
    AlibiBias,
    DynamicNTKScaling,
    LinearScaling,
    RMSNorm,
    Rotary,
    SelfAttention,
    YarnScaling,
    attention_ops,
)
from tests.layers import oracle, rows
from tests.references import positions as position_reference

HEADS, HEAD_WIDTH = 4, 4


def rms():
    return RMSNorm()


#: Name -> options of a `SelfAttention`; functions are called, so that each test gets its own parts.
OPTIONS = {
    "multi_head": {},
    "grouped": {"key_value_heads": 2},
    "multi_query": {"key_value_heads": 1},
    "biases": {"use_bias": True},
    "window": {"window": 2},
    "logit_cap": {"logit_cap": 0.7},
    "scale": {"scale": 1.0},
    "head_norms": {"query_norm": rms, "key_norm": rms},
    "half_split": {"rotary": lambda: Rotary(100.0)},
    "interleaved": {"rotary": lambda: Rotary(100.0, "interleaved")},
    "linear": {"rotary": lambda: Rotary(scaling=LinearScaling(4.0))},
    "yarn": {"rotary": lambda: Rotary(scaling=YarnScaling(4.0, 64, beta_fast=8.0))},
    # Documents of up to 6 tokens, trained on 2.
    "dynamic_ntk": {"rotary": lambda: Rotary(scaling=DynamicNTKScaling(2.0, 2))},
    "all": {
        "key_value_heads": 2,
        "use_bias": True,
        "use_output_bias": False,
        "window": 3,
        "logit_cap": 2.0,
        "scale": 0.3,
        "query_norm": rms,
        "key_norm": rms,
        "rotary": lambda: Rotary(50.0, "interleaved", YarnScaling(2.0, 32, beta_fast=4.0)),
    },
}


def attention(options="multi_head", **more):
    """A built layer with random weights."""
    options = {**OPTIONS[options], **more}
    options = {name: value() if callable(value) else value for name, value in options.items()}
    layer = SelfAttention(HEADS, HEAD_WIDTH, **options)
    layer.build((None, None, rows.WIDTH))
    return rows.randomize(layer)


def score_bias():
    return rows.normal(1, HEADS, rows.TIME, rows.TIME, seed=5)


ROWS = {
    "pads": (rows.POSITIONS, None),
    "segments": (rows.SEGMENT_POSITIONS, rows.SEGMENTS),
}


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        (name, kind)
        for name in OPTIONS
        for kind in ROWS
        if (name, kind) != ("dynamic_ntk", "segments")
    ],
)
def test_equals_the_reference(options, kind):
    layer, x = attention(options), rows.inputs()
    positions, segment_ids = ROWS[kind]
    expected, expected_weights = oracle.self_attention(
        layer, x, positions, rows.VALID, segment_ids=segment_ids
    )
    found = rows.run(layer, x, positions, rows.VALID, segment_ids=segment_ids)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    found = rows.run(layer.attention_weights, x, positions, rows.VALID, segment_ids=segment_ids)
    np.testing.assert_allclose(found, expected_weights, atol=1e-5)


@pytest.mark.parametrize("rows_of_bias", [1, rows.BATCH])
@pytest.mark.parametrize("options", ["multi_head", "all"])
def test_adds_the_bias_to_the_scores(options, rows_of_bias):
    layer, x = attention(options), rows.inputs()
    bias = rows.normal(rows_of_bias, HEADS, rows.TIME, rows.TIME, seed=5)
    expected, _ = oracle.self_attention(layer, x, rows.POSITIONS, rows.VALID, bias)
    found = rows.run(layer, x, rows.POSITIONS, rows.VALID, bias=bias)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("options", ["multi_head", "half_split"])
def test_sees_all_real_tokens_if_not_causal(options):
    layer, x = attention(options, causal=False), rows.inputs()
    expected, weights = oracle.self_attention(layer, x, rows.POSITIONS, rows.VALID)
    assert weights[0, 0, 0, 5] > 0
    found = rows.run(layer, x, rows.POSITIONS, rows.VALID)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("options", ["multi_head", "grouped", "window", "all"])
def test_weights_sum_to_1_and_are_exactly_0_on_what_is_hidden(options):
    layer = attention(options)
    weights = rows.run(layer.attention_weights, rows.inputs(), rows.POSITIONS, rows.VALID)
    assert weights.shape == (rows.BATCH, HEADS, rows.TIME, rows.TIME)
    real = np.broadcast_to(rows.VALID[:, None], weights.shape[:3])
    np.testing.assert_allclose(weights.sum(-1)[real], 1.0, atol=1e-6)
    assert (weights[~real] == 0).all()
    assert (weights.transpose(0, 3, 1, 2)[~rows.VALID] == 0).all()
    assert (weights[..., ~np.tri(rows.TIME, dtype=bool)] == 0).all()


def test_reproduces_the_worked_example_in_numpy():
    # Four words of width 4, one head, every word sees every word.
    draws = np.random.RandomState(42)
    x, w_q, w_k, w_v = (draws.randn(4, 4) for _ in range(4))
    scores = (x @ w_q) @ (x @ w_k).T / np.sqrt(4)
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    context = weights @ (x @ w_v)

    layer = SelfAttention(1, 4, causal=False)
    layer.build((None, None, 4))
    layer.query_key_value.set_weights([np.concatenate([w_q, w_k, w_v], axis=1)])
    layer.output_projection.set_weights([np.eye(4)])
    arguments = (
        x[None].astype("float32"),
        np.arange(4)[None].astype("int32"),
        np.ones((1, 4), "bool"),
    )
    np.testing.assert_allclose(rows.run(layer, *arguments)[0], context, atol=1e-5)
    np.testing.assert_allclose(
        rows.run(layer.attention_weights, *arguments)[0, 0], weights, atol=1e-5
    )


def test_dropout_drops_weights_in_training_only():
    plain, dropping = attention(), attention(dropout=0.5)
    arguments = (rows.inputs(), rows.POSITIONS, rows.VALID)
    expected = rows.run(plain, *arguments)
    # PyTorch's own kernel, which the plain layer runs, adds in another order.
    tolerance = 1e-6 if attention_ops.can_fuse() else 0.0
    np.testing.assert_allclose(rows.run(dropping, *arguments), expected, rtol=0, atol=tolerance)
    trained = rows.run(dropping, *arguments, training=True)
    assert abs(trained - expected).max() > 0.1
    weights = rows.run(dropping.attention_weights, *arguments)
    np.testing.assert_array_equal(weights, rows.run(plain.attention_weights, *arguments))


@pytest.mark.parametrize(
    ("options", "kind"),
    [(name, "pads") for name in OPTIONS if name != "dynamic_ntk"]
    + [(name, "segments") for name in ("multi_head", "half_split", "all")],
)
def test_steps_equal_the_call(options, kind):
    layer, x = attention(options), rows.inputs()
    positions, segment_ids = ROWS[kind]
    whole = rows.run(layer, x, positions, rows.VALID, segment_ids=segment_ids)
    for chunks in rows.CHUNKS:
        outputs = rows.step_through(
            layer, chunks, x, positions, rows.VALID, segment_ids=segment_ids
        )
        np.testing.assert_allclose(np.concatenate(outputs, axis=1), whole, atol=1e-5)


@pytest.mark.parametrize("chunks", rows.CHUNKS)
def test_steps_of_dynamic_ntk_equal_the_call_on_the_same_prefix(chunks):
    layer, x = attention("dynamic_ntk"), rows.inputs()
    outputs = rows.step_through(layer, chunks, x, rows.POSITIONS, rows.VALID)
    begin = 0
    for output in outputs:
        end = begin + output.shape[1]
        whole, _ = oracle.self_attention(
            layer, x[:, :end], rows.POSITIONS[:, :end], rows.VALID[:, :end]
        )
        np.testing.assert_allclose(output, whole[:, begin:end], atol=1e-5)
        begin = end


def test_dynamic_ntk_refuses_segments_by_name():
    positions, segment_ids = ROWS["segments"]
    with pytest.raises(ValueError, match=r"no segment_ids: DynamicNTKScaling\(factor=2\.0"):
        rows.run(
            attention("dynamic_ntk"), rows.inputs(), positions, rows.VALID, segment_ids=segment_ids
        )


@pytest.mark.parametrize("chunks", rows.CHUNKS)
def test_steps_take_a_bias_over_the_slots_of_the_cache(chunks):
    layer, x, alibi = attention(), rows.inputs(), AlibiBias(HEADS)
    bias = position_reference.alibi_bias(rows.POSITIONS, HEADS)
    expected, _ = oracle.self_attention(layer, x, rows.POSITIONS, rows.VALID, bias)
    biases = rows.step_through(alibi, chunks, rows.POSITIONS)
    state, cursor = layer.start(rows.BATCH, rows.TIME), 0
    for size, bias in zip(chunks, biases, strict=True):
        part = slice(cursor, cursor + size)
        arguments = (x[:, part], rows.POSITIONS[:, part], rows.VALID[:, part])
        arguments = [keras.ops.convert_to_tensor(argument) for argument in arguments]
        output, state = layer.step(
            *arguments, bias=keras.ops.convert_to_tensor(bias), state=state, cursor=cursor
        )
        np.testing.assert_allclose(rows.to_numpy(output), expected[:, part], atol=1e-5)
        cursor += size


def test_refuses_to_step_if_not_causal():
    with pytest.raises(ValueError, match="causal=False"):
        SelfAttention(2, 4, causal=False, name="a").start(1, 4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"heads": 0}, "heads=0"),
        ({"heads": 2.0}, "heads=2.0"),
        ({"head_width": -4}, "head_width=-4"),
        ({"key_value_heads": 0}, "key_value_heads=0"),
        ({"key_value_heads": 3}, "heads=4, key_value_heads=3"),
        ({"window": 0}, "window=0"),
        ({"window": 2, "causal": False}, "window=2"),
        ({"logit_cap": -1.0}, "logit_cap=-1.0"),
        ({"dropout": 1.0}, "dropout=1.0"),
        ({"dropout": -0.1}, "dropout=-0.1"),
        ({"query_norm": rms}, "key_norm=None"),
        ({"key_norm": rms}, "query_norm=None"),
    ],
)
def test_names_the_bad_argument(options, words):
    options = {name: value() if callable(value) else value for name, value in options.items()}
    with pytest.raises(ValueError, match=words):
        SelfAttention(**{"heads": 4, "head_width": 4, **options})


def test_equal_matrices_start_from_different_numbers():
    layer = SelfAttention(2, 4, kernel_initializer=keras.initializers.RandomNormal())
    layer.build((None, None, 24))
    # Both matrices hold 24 * 24 or 8 * 24 numbers; no run of one may repeat in the other.
    first, second = (np.ravel(w)[:192] for w in layer.get_weights())
    assert abs(first - second).min() > 0


def test_initializers_follow_the_arguments():
    layer = SelfAttention(2, 4, kernel_initializer="ones", output_initializer="zeros")
    layer.build((None, None, 8))
    assert (layer.query_key_value.get_weights()[0] == 1).all()
    assert (layer.output_projection.get_weights()[0] == 0).all()
