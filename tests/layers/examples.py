"""An example of every public layer with the arrays it takes: name -> (function, arrays).

Options differ from their defaults, so that one that is lost in a config is noticed.
"""

import keras
import numpy as np

from keras_arch import layers
from tests.layers import rows, sources

TOKEN_IDS = np.arange(rows.BATCH * rows.TIME, dtype="int32").reshape(rows.BATCH, rows.TIME) % 11
#: What attention takes.
ATTENTION_INPUTS = (rows.inputs(), rows.POSITIONS, rows.VALID)
#: What attention over a memory takes.
CONTEXT_INPUTS = (rows.inputs(), np.nan_to_num(sources.memory(rows.WIDTH)), sources.VALID)
#: What recurrent decoders with attention take.
DECODER_INPUTS = (rows.inputs(), rows.VALID, *CONTEXT_INPUTS[1:])


def attention(**options):
    return layers.SelfAttention(
        4,
        4,
        key_value_heads=2,
        use_bias=True,
        rotary=layers.Rotary(500.0, "interleaved", layers.YarnScaling(2.0, 32, 16.0, 2.0)),
        query_norm=layers.RMSNorm(1e-5, name="query_norm"),
        key_norm=layers.RMSNorm(1e-5, name="key_norm"),
        window=3,
        logit_cap=20.0,
        scale=0.3,
        dropout=0.1,
        kernel_initializer=keras.initializers.RandomNormal(stddev=0.3),
        output_initializer="glorot_normal",
        **options,
    )


def cross_attention(**options):
    return layers.CrossAttention(
        4,
        4,
        key_value_heads=2,
        memory_width=rows.WIDTH,
        use_bias=True,
        scale=0.3,
        dropout=0.1,
        kernel_initializer=keras.initializers.RandomNormal(stddev=0.3),
        output_initializer="glorot_normal",
        **options,
    )


def feedforward(**options):
    return layers.FeedForward(
        12, "gelu_tanh", False, 0.1, "he_normal", keras.initializers.RandomNormal(), **options
    )


def norm(**options):
    return keras.layers.LayerNormalization(epsilon=1e-6, **options)


def recurrent(layer, **options):
    return layer(
        5,
        recurrent_dropout=0.1,
        normalise=True,
        reverse=True,
        kernel_initializer="he_normal",
        recurrent_initializer=keras.initializers.RandomNormal(),
        **options,
    )


def decoder_block(**options):
    return layers.DecoderBlock(
        layers.PreNorm(attention(), norm(), 0.2),
        layers.SandwichNorm(feedforward(), norm(), layers.RMSNorm(name="output_norm")),
        **options,
    )


EXAMPLES = {
    "Adapter": (lambda **o: layers.Adapter(3, "gelu_tanh", "he_normal", **o), (rows.inputs(),)),
    "AddBias": (lambda **o: layers.AddBias(**o), (rows.inputs(),)),
    "AdditiveAttention": (
        lambda **o: layers.AdditiveAttention(7, True, True, True, "he_normal", **o),
        (*CONTEXT_INPUTS, abs(rows.normal(rows.BATCH, rows.TIME, sources.LENGTH, seed=8))),
    ),
    "AlibiBias": (lambda **o: layers.AlibiBias(3, **o), (rows.POSITIONS,)),
    "BahdanauDecoder": (
        lambda **o: layers.BahdanauDecoder(
            layers.AdditiveAttention(7, coverage=True),
            [layers.GRU(5, name="bottom"), layers.LSTM(6, name="top")],
            4,
            "he_normal",
            **o,
        ),
        DECODER_INPUTS,
    ),
    "CausalLMHead": (
        lambda **o: layers.CausalLMHead(11, True, 5.0, "he_normal", **o),
        (rows.inputs(),),
    ),
    "CrossAttention": (cross_attention, CONTEXT_INPUTS),
    "CrossDecoderBlock": (
        lambda **o: layers.CrossDecoderBlock(
            layers.PreNorm(attention(), norm()),
            layers.PostNorm(cross_attention(), norm(), 0.2),
            layers.PreNorm(feedforward(), norm()),
            **o,
        ),
        (*ATTENTION_INPUTS, *CONTEXT_INPUTS[1:]),
    ),
    "DecoderBlock": (decoder_block, ATTENTION_INPUTS),
    "ElmanRNN": (
        lambda **o: recurrent(layers.ElmanRNN, activation="relu", **o),
        (rows.inputs(), rows.VALID),
    ),
    "EncoderBlock": (
        lambda **o: layers.EncoderBlock(
            layers.PostNorm(layers.SelfAttention(4, 4, causal=False), norm()),
            layers.PostNorm(feedforward(), norm()),
            **o,
        ),
        ATTENTION_INPUTS,
    ),
    "FeedForward": (feedforward, (rows.inputs(),)),
    "FirstToken": (lambda **o: layers.FirstToken(**o), (rows.inputs(), rows.VALID)),
    "FixedWindow": (lambda **o: layers.FixedWindow(3, **o), (rows.inputs(), rows.VALID)),
    "FoldChoices": (lambda **o: layers.FoldChoices(**o), (rows.inputs(),)),
    "GRU": (lambda **o: recurrent(layers.GRU, **o), (rows.inputs(), rows.VALID)),
    "GatedFeedForward": (
        lambda **o: layers.GatedFeedForward(12, "silu", False, 0.1, "he_normal", "ones", **o),
        (rows.inputs(),),
    ),
    "LSTM": (lambda **o: recurrent(layers.LSTM, **o), (rows.inputs(), rows.VALID)),
    "LayerNorm": (lambda **o: layers.LayerNorm(1e-4, False, **o), (rows.inputs(),)),
    "LearnedPositions": (
        lambda **o: layers.LearnedPositions(7, 8, keras.initializers.RandomNormal(), 2, **o),
        (rows.POSITIONS,),
    ),
    "LocalAttention": (
        lambda **o: layers.LocalAttention(2, 3, True, "he_normal", **o),
        CONTEXT_INPUTS,
    ),
    "LocationAttention": (
        lambda **o: layers.LocationAttention(7, "he_normal", **o),
        CONTEXT_INPUTS,
    ),
    "LuongDecoder": (
        lambda **o: layers.LuongDecoder(
            layers.MultiplicativeAttention(True), [layers.GRU(5)], 4, False, "he_normal", **o
        ),
        DECODER_INPUTS,
    ),
    "MaxTokens": (lambda **o: layers.MaxTokens(**o), (rows.inputs(), rows.VALID)),
    "MeanTokens": (lambda **o: layers.MeanTokens(**o), (rows.inputs(), rows.VALID)),
    "MultiplicativeAttention": (
        lambda **o: layers.MultiplicativeAttention(True, "he_normal", **o),
        CONTEXT_INPUTS,
    ),
    "ParallelBlock": (
        lambda **o: layers.ParallelBlock(attention(), feedforward(), norm(), 0.3, **o),
        ATTENTION_INPUTS,
    ),
    "PostNorm": (lambda **o: layers.PostNorm(attention(), norm(), 0.2, **o), ATTENTION_INPUTS),
    "PreNorm": (
        lambda **o: layers.PreNorm(feedforward(), norm(), 0.2, layers.Adapter(3), **o),
        (rows.inputs(),),
    ),
    "PutTokens": (
        lambda **o: layers.PutTokens(**o),
        (TOKEN_IDS, rows.POSITIONS[:, 3:], TOKEN_IDS[:, :3]),
    ),
    "RMSNorm": (lambda **o: layers.RMSNorm(1e-4, **o), (rows.inputs(),)),
    "RelativeBias": (
        lambda **o: layers.RelativeBias(3, 8, 20, True, "he_normal", **o),
        (rows.POSITIONS,),
    ),
    "Rotary": (
        lambda **o: layers.Rotary(200.0, "interleaved", layers.LinearScaling(2.0), **o),
        (rows.normal(rows.BATCH, 2, rows.TIME, 8), rows.POSITIONS),
    ),
    "SampleTokens": (lambda **o: layers.SampleTokens(3, **o), (rows.inputs(),)),
    "SandwichNorm": (
        lambda **o: layers.SandwichNorm(feedforward(), norm(), norm(name="output_norm"), 0.2, **o),
        (rows.inputs(),),
    ),
    "SelfAttention": (attention, ATTENTION_INPUTS),
    "SinusoidalPositions": (
        lambda **o: layers.SinusoidalPositions(8, 50.0, **o),
        (rows.POSITIONS,),
    ),
    "SpanScores": (
        lambda **o: layers.SpanScores("he_normal", **o),
        (rows.inputs(), rows.VALID),
    ),
    "TakeTokens": (
        lambda **o: layers.TakeTokens(**o),
        (rows.inputs(), rows.POSITIONS[:, :3]),
    ),
    "TokenEmbedding": (
        lambda **o: layers.TokenEmbedding(11, 8, 2.0, keras.initializers.RandomNormal(), 0.5, **o),
        (TOKEN_IDS,),
    ),
    "TokenPositions": (lambda **o: layers.TokenPositions(9, **o), (rows.VALID,)),
}


def model_of(name, **options):
    """A functional model of the one layer, with random weights, and its arrays."""
    make, arrays = EXAMPLES[name]
    inputs = [keras.Input(a.shape[1:], dtype=str(a.dtype)) for a in arrays]
    model = keras.Model(inputs, make(**options)(*inputs))
    return rows.randomize(model), arrays
