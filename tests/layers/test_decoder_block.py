import numpy as np
import pytest

from keras_arch.layers import (
    DecoderBlock,
    FeedForward,
    GatedFeedForward,
    LayerNorm,
    ParallelBlock,
    PostNorm,
    PreNorm,
    RMSNorm,
    Rotary,
    SandwichNorm,
    SelfAttention,
)
from tests.layers import oracle, rows
from tests.references import feedforward, residual

HEADS = 4


def attention(**options):
    return SelfAttention(HEADS, 4, 2, **{"rotary": Rotary(), **options})


def layer_norm():
    return LayerNorm()


def rms_norm():
    return RMSNorm()


def gpt2():
    return DecoderBlock(
        PreNorm(attention(rotary=None, use_bias=True), layer_norm()),
        PreNorm(FeedForward(12, "gelu_tanh"), layer_norm()),
    )


def llama():
    return DecoderBlock(
        PreNorm(attention(), rms_norm()),
        PreNorm(GatedFeedForward(12, "silu", use_bias=False), rms_norm()),
    )


def gemma2():
    return DecoderBlock(
        SandwichNorm(attention(window=2, logit_cap=5.0), rms_norm(), rms_norm()),
        SandwichNorm(GatedFeedForward(12, "gelu_tanh", use_bias=False), rms_norm(), rms_norm()),
    )


def transformer():
    return DecoderBlock(
        PostNorm(attention(), layer_norm()), PostNorm(FeedForward(12), layer_norm())
    )


def gptj():
    return ParallelBlock(attention(), FeedForward(12, "gelu_tanh"), layer_norm())


BLOCKS = [gpt2, llama, gemma2, transformer, gptj]


def built(make):
    layer = make()
    layer.build((None, None, rows.WIDTH))
    return rows.randomize(layer)


def reference_feedforward(layer):
    weights = [np.array(w, "float64") for w in layer.get_weights()]
    up, down = (w for w in weights if w.ndim == 2)
    biases = [w for w in weights if w.ndim == 1]
    activation = {
        "relu": feedforward.relu,
        "silu": feedforward.silu,
        "gelu_tanh": feedforward.gelu_tanh,
    }[layer.activation.__name__]
    if isinstance(layer, GatedFeedForward):
        gate, value = np.split(up, 2, axis=1)
        return lambda x: feedforward.gated_feedforward(x, gate, value, down, activation)
    return lambda x: feedforward.feedforward(x, up, down, activation, *biases)


def reference_residual(layer, x, sublayer):
    order = {
        PreNorm: residual.pre,
        PostNorm: residual.post,
        SandwichNorm: residual.sandwich,
    }[type(layer)]
    norms = [oracle.norm(part) for part in layer.parts() if part is not layer.sublayer]
    return order(x, sublayer, *norms)


def reference_block(layer, x, *arguments, **keywords):
    x = x.astype("float64")
    if isinstance(layer, ParallelBlock):
        sublayer = oracle.attention_sublayer(layer.attention, *arguments, **keywords)
        return residual.parallel(
            x, sublayer, reference_feedforward(layer.feedforward), oracle.norm(layer.norm)
        )
    sublayer = oracle.attention_sublayer(layer.attention.sublayer, *arguments, **keywords)
    x = reference_residual(layer.attention, x, sublayer)
    inner = reference_feedforward(layer.feedforward.sublayer)
    return reference_residual(layer.feedforward, x, inner)


@pytest.mark.parametrize("make", BLOCKS)
def test_equals_the_reference_whole_and_in_steps(make):
    layer, x = built(make), rows.inputs()
    arguments = (rows.POSITIONS, rows.VALID)
    found = rows.run(layer, x, *arguments)
    np.testing.assert_allclose(found, reference_block(layer, x, *arguments), atol=5e-5)
    for chunks in rows.CHUNKS:
        outputs = rows.step_through(layer, chunks, x, *arguments)
        np.testing.assert_allclose(np.concatenate(outputs, axis=1), found, atol=1e-5)


@pytest.mark.parametrize("make", [llama, gptj])
def test_hands_bias_and_segments_to_the_attention(make):
    layer, x = built(make), rows.inputs()
    arguments = (rows.SEGMENT_POSITIONS, rows.VALID)
    more = {
        "bias": rows.normal(1, HEADS, rows.TIME, rows.TIME, seed=5),
        "segment_ids": rows.SEGMENTS,
    }
    found = rows.run(layer, x, *arguments, **more)
    np.testing.assert_allclose(found, reference_block(layer, x, *arguments, **more), atol=5e-5)


def test_parallel_dropout_drops_the_sum_in_training_only():
    layer = ParallelBlock(attention(), FeedForward(12), layer_norm(), dropout=0.5)
    x, arguments = rows.inputs(), (rows.POSITIONS, rows.VALID)
    layer.build(x.shape)
    rows.randomize(layer)
    branch = rows.run(layer, x, *arguments) - x
    trained = rows.run(layer, x, *arguments, training=True) - x
    dropped = abs(trained) < 1e-6
    assert 0.2 < dropped.mean() < 0.8
    np.testing.assert_allclose(trained[~dropped], 2 * branch[~dropped], atol=1e-5)


def test_parallel_names_the_bad_argument():
    with pytest.raises(ValueError, match=r"dropout=-0\.5"):
        ParallelBlock(attention(), FeedForward(12), layer_norm(), dropout=-0.5)
