import keras
import numpy as np
import pytest
from keras import ops

from keras_arch.layers import CrossAttention
from tests.layers import oracle, rows, sources

HEADS = 4
#: Name -> options of a `CrossAttention`, over a memory of another width.
OPTIONS = {
    "multi_head": {},
    "grouped": {"key_value_heads": 2, "use_bias": True},
    "scale": {"key_value_heads": 1, "scale": 1.0},
}
every_option = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())


def attention(**options):
    """A built layer with random weights."""
    layer = CrossAttention(HEADS, 3, **{"memory_width": sources.WIDTH, **options})
    layer.build((None, None, rows.WIDTH))
    return rows.randomize(layer)


def arguments():
    """Queries, a memory that is NaN at its pads, and its validity."""
    return rows.inputs(), sources.memory(), sources.VALID


@every_option
def test_equals_the_reference(options):
    layer = attention(**options)
    expected, expected_weights = oracle.cross_attention(layer, *arguments())
    np.testing.assert_allclose(rows.run(layer, *arguments()), expected, atol=1e-5)
    weights = rows.run(layer.attention_weights, *arguments())
    np.testing.assert_allclose(weights, expected_weights, atol=1e-6)
    # Exactly: a pad gets nothing.
    hidden = np.broadcast_to(~sources.VALID[:, None, None], weights.shape)
    assert not weights[hidden].any()
    real = sources.VALID.any(axis=1)
    np.testing.assert_allclose(weights[real].sum(axis=-1), 1.0, atol=1e-6)


@every_option
def test_steps_with_beams_equal_the_whole(options):
    layer = attention(**options)
    x, memory, memory_valid = map(ops.convert_to_tensor, arguments())
    whole = rows.run(layer, x, memory, memory_valid)
    state = layer.start(rows.BATCH, rows.TIME, memory=memory, memory_valid=memory_valid)
    assert list(state) == ["memory"]
    # The six queries of a row as two steps of three beams of one.
    for t in range(2):
        beams = ops.reshape(x[:, 3 * t : 3 * t + 3], (3 * rows.BATCH, 1, rows.WIDTH))
        found, same = layer.step(beams, state=state, cursor=t)
        assert same is state
        found = np.reshape(rows.to_numpy(found), (rows.BATCH, 3, rows.WIDTH))
        np.testing.assert_allclose(found, whole[:, 3 * t : 3 * t + 3], atol=1e-6)


def test_the_memory_is_as_wide_as_the_stream_unless_said():
    layer = attention(memory_width=None)
    assert [tuple(w.shape) for w in layer.weights] == [(8, 12), (8, 24), (12, 8)]


def test_dropout_drops_weights_in_training_only():
    plain, dropping = attention(), attention(dropout=0.5)
    expected = rows.run(plain, *arguments())
    np.testing.assert_array_equal(rows.run(dropping, *arguments()), expected)
    assert abs(rows.run(dropping, *arguments(), training=True) - expected).max() > 0.1
    weights = rows.run(dropping.attention_weights, *arguments())
    np.testing.assert_array_equal(weights, rows.run(plain.attention_weights, *arguments()))


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_is_close(policy):
    layer = attention()
    keras.config.set_dtype_policy(policy)
    mixed = attention()
    weights = rows.run(mixed.attention_weights, *arguments())
    assert weights.dtype == np.float32
    np.testing.assert_allclose(weights, rows.run(layer.attention_weights, *arguments()), atol=0.05)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"heads": 0}, "heads=0"),
        ({"head_width": 2.5}, r"head_width=2\.5"),
        ({"key_value_heads": 3}, "heads=4, key_value_heads=3"),
        ({"memory_width": -1}, "memory_width=-1"),
        ({"dropout": 1.0}, r"dropout=1\.0"),
    ],
)
def test_names_the_bad_argument(options, words):
    with pytest.raises(ValueError, match=words):
        CrossAttention(**{"heads": 4, "head_width": 4, **options})


def test_initializers_follow_the_arguments():
    layer = CrossAttention(2, 4, kernel_initializer="ones", output_initializer="zeros")
    layer.build((None, None, 8))
    for part, value in ((layer.query, 1), (layer.key_value, 1), (layer.output_projection, 0)):
        assert (part.get_weights()[0] == value).all()
