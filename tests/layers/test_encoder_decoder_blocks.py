"""Blocks of encoders, and of decoders that read a memory."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_arch as ka
from keras_arch.layers import (
    CrossAttention,
    CrossDecoderBlock,
    EncoderBlock,
    FeedForward,
    LayerNorm,
    PostNorm,
    PreNorm,
    SelfAttention,
)
from tests.layers import oracle, rows, sources
from tests.layers.test_decoder_block import reference_feedforward, reference_residual

HEADS = 2
TOKENS = (rows.POSITIONS, rows.VALID)


def wrapped(order, *sublayers):
    return [order(sublayer, LayerNorm()) for sublayer in sublayers]


def encoder(order):
    return EncoderBlock(*wrapped(order, SelfAttention(HEADS, 4, causal=False), FeedForward(12)))


def decoder(order):
    cross = CrossAttention(HEADS, 4, memory_width=sources.WIDTH)
    return CrossDecoderBlock(*wrapped(order, SelfAttention(HEADS, 4), cross, FeedForward(12)))


def built(block):
    block.build((None, None, rows.WIDTH))
    return rows.randomize(block)


def of_tokens(block, x, bias):
    attend = oracle.attention_sublayer(block.attention.sublayer, *TOKENS, bias)
    return reference_residual(block.attention, x.astype("float64"), attend)


def of_feedforward(block, x):
    return reference_residual(
        block.feedforward, x, reference_feedforward(block.feedforward.sublayer)
    )


def score_bias():
    return rows.normal(1, HEADS, rows.TIME, rows.TIME, seed=5)


def test_an_encoder_block_equals_the_reference():
    block, x, bias = built(encoder(PreNorm)), rows.inputs(), score_bias()
    expected = of_feedforward(block, of_tokens(block, x, bias))
    np.testing.assert_allclose(rows.run(block, x, *TOKENS, bias=bias), expected, atol=5e-5)


def test_a_decoder_block_equals_the_reference_whole_and_in_steps():
    block, x, bias = built(decoder(PostNorm)), rows.inputs(), score_bias()
    memory = {"memory": sources.memory(), "memory_valid": sources.VALID}
    y = of_tokens(block, x, bias)
    y = reference_residual(
        block.cross_attention,
        y,
        lambda y: oracle.cross_attention(block.cross_attention.sublayer, y, *memory.values())[0],
    )
    whole = rows.run(block, x, *TOKENS, **memory, bias=bias)
    np.testing.assert_allclose(whole, of_feedforward(block, y), atol=5e-5)
    # The bias of a chunk is over all slots of the cache: one that is the same for all queries.
    bias = np.broadcast_to(bias[:, :, :1], bias.shape)
    whole = rows.run(block, x, *TOKENS, **memory, bias=bias)
    memory = {name: ops.convert_to_tensor(value) for name, value in memory.items()}
    for size in (1, 3):
        state, outputs = block.start(rows.BATCH, rows.TIME, **memory), []
        for begin in range(0, rows.TIME, size):
            part = slice(begin, begin + size)
            chunk = [ops.convert_to_tensor(array[:, part]) for array in (x, *TOKENS)]
            chunk_bias = ops.convert_to_tensor(bias[:, :, :size])
            output, state = block.step(*chunk, bias=chunk_bias, state=state, cursor=begin)
            outputs.append(rows.to_numpy(output))
        np.testing.assert_allclose(np.concatenate(outputs, axis=1), whole, atol=1e-5)


def test_a_decoder_block_tells_where_it_looks():
    block, x = built(decoder(PreNorm)), rows.inputs()
    weights = rows.run(block.attention_weights, x, *TOKENS, sources.memory(), sources.VALID)
    y = of_tokens(block, x, None)
    y = np.stack([[oracle.norm(block.cross_attention.norm)(v) for v in row] for row in y])
    _, expected = oracle.cross_attention(
        block.cross_attention.sublayer, y, sources.memory(), sources.VALID
    )
    real = np.broadcast_to(rows.VALID[:, None], weights.shape[:3])
    np.testing.assert_allclose(weights[real], expected[real], atol=1e-5)
    assert not weights[~real].any()


def test_an_encoder_block_on_the_time_side_is_refused_by_name():
    token_ids = keras.Input((None,), dtype="int32", name="token_ids")
    valid = keras.Input((None,), dtype="bool", name="valid")
    x = ka.layers.TokenEmbedding(5, 4)(token_ids)
    positions = ka.layers.TokenPositions()(valid)
    block = EncoderBlock(
        *wrapped(PreNorm, SelfAttention(2, 2, causal=False), FeedForward(4)), name="both_ways"
    )
    x = block(x, positions, valid)
    model = rows.randomize(keras.Model([token_ids, valid], ka.layers.CausalLMHead(5)(x)))
    with pytest.raises(ValueError, match=r"layer 'both_ways' \(EncoderBlock\) reads token_ids"):
        ka.generation.Stepper(model)
