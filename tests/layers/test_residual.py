import keras
import numpy as np
import pytest

from keras_arch.layers import Adapter, PostNorm, PreNorm, Rotary, SandwichNorm, SelfAttention
from tests.layers import oracle, rows
from tests.references import residual as reference


def norm():
    return keras.layers.LayerNormalization()


def parts(kind):
    """The arguments after the sublayer."""
    return (norm(), keras.layers.RMSNormalization()) if kind is SandwichNorm else (norm(),)


KINDS = {PreNorm: reference.pre, PostNorm: reference.post, SandwichNorm: reference.sandwich}


def built(layer):
    layer.build((None, None, rows.WIDTH))
    return rows.randomize(layer)


def norms(layer):
    others = (layer.sublayer, layer.adapter)
    return [oracle.norm(part) for part in layer.parts() if part not in others]


@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_reference_around_a_matrix(kind):
    layer = built(kind(keras.layers.Dense(rows.WIDTH), *parts(kind)))
    kernel, bias = layer.sublayer.get_weights()
    x = rows.inputs()
    expected = KINDS[kind](x.astype("float64"), lambda h: h @ kernel + bias, *norms(layer))
    np.testing.assert_allclose(rows.run(layer, x), expected, atol=2e-5)


def around_attention(kind, **options):
    attention = SelfAttention(4, 4, 2, rotary=Rotary(), window=3)
    return built(kind(attention, *parts(kind), **options))


@pytest.mark.parametrize("kind", KINDS)
def test_hands_arguments_through_and_steps(kind):
    layer, x = around_attention(kind), rows.inputs()
    arguments = (rows.SEGMENT_POSITIONS, rows.VALID)
    sublayer = oracle.attention_sublayer(layer.sublayer, *arguments, segment_ids=rows.SEGMENTS)
    expected = KINDS[kind](x.astype("float64"), sublayer, *norms(layer))
    found = rows.run(layer, x, *arguments, segment_ids=rows.SEGMENTS)
    np.testing.assert_allclose(found, expected, atol=2e-5)
    for chunks in rows.CHUNKS:
        outputs = rows.step_through(layer, chunks, x, *arguments, segment_ids=rows.SEGMENTS)
        np.testing.assert_allclose(np.concatenate(outputs, axis=1), found, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_an_adapter_stands_right_before_the_sum(kind):
    layer, x = around_attention(kind, adapter=Adapter(3)), rows.inputs()
    arguments = (rows.POSITIONS, rows.VALID)
    branch = rows.run(layer.sublayer, rows.run(layer.enter, x), *arguments)
    if kind is SandwichNorm:
        branch = rows.run(layer.output_norm, branch)
    summed = x + rows.run(layer.adapter, branch)
    expected = rows.run(layer.norm, summed) if kind is PostNorm else summed
    found = rows.run(layer, x, *arguments)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    outputs = rows.step_through(layer, (1, 2, 3), x, *arguments)
    np.testing.assert_allclose(np.concatenate(outputs, axis=1), found, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sublayer_without_steps_is_just_called(kind):
    layer, x = built(kind(keras.layers.Dense(rows.WIDTH), *parts(kind))), rows.inputs()
    assert layer.start(rows.BATCH, rows.TIME) == {}
    found = np.concatenate(rows.step_through(layer, (3, 3), x), axis=1)
    np.testing.assert_allclose(found, rows.run(layer, x), atol=1e-6)


@pytest.mark.parametrize("kind", [PreNorm, SandwichNorm])
def test_dropout_drops_the_branch_in_training_only(kind):
    layer = built(kind(keras.layers.Dense(rows.WIDTH), *parts(kind), dropout=0.5))
    x = rows.inputs()
    branch = rows.run(layer, x) - x
    trained = rows.run(layer, x, training=True) - x
    # Kept ones are doubled.
    dropped = abs(trained) < 1e-6
    assert 0.2 < dropped.mean() < 0.8
    np.testing.assert_allclose(trained[~dropped], 2 * branch[~dropped], atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_names_the_bad_argument(kind):
    with pytest.raises(ValueError, match="dropout=1"):
        kind(keras.layers.Dense(8), *parts(kind), dropout=1)
