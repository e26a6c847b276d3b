"""Hands the weights and options of our layers to the numpy references."""

import keras
import numpy as np

from keras_arch.layers import DynamicNTKScaling, LinearScaling, RMSNorm, YarnScaling
from tests.references import attention, rotary
from tests.references.norms import layer_norm, rms_norm


def norm(layer):
    """The reference of a built norm layer, Keras's or ours: a function of x."""
    weights = [np.array(w, "float64") for w in layer.get_weights()]
    if isinstance(layer, keras.layers.RMSNormalization | RMSNorm):
        return lambda x: rms_norm(x, weights[0], layer.epsilon)
    offset = weights[1] if len(weights) == 2 else 0.0
    return lambda x: layer_norm(x, weights[0], offset, layer.epsilon)


def rotate(layer, head_width):
    """The reference of a `Rotary`, a function of (vector, position, length)."""
    scaling, base = layer.scaling, layer.base
    magnitude = 1.0

    def frequencies(length):
        return rotary.frequencies(head_width, base)

    if isinstance(scaling, LinearScaling):

        def frequencies(length):
            return rotary.linear(head_width, base, scaling.factor)

    elif isinstance(scaling, DynamicNTKScaling):

        def frequencies(length):
            return rotary.dynamic_ntk(
                head_width, base, scaling.factor, scaling.context_length, int(length)
            )

    elif isinstance(scaling, YarnScaling):
        magnitude = rotary.yarn_magnitude(scaling.factor)

        def frequencies(length):
            arguments = (scaling.factor, scaling.context_length)
            return rotary.yarn(head_width, base, *arguments, scaling.beta_fast, scaling.beta_slow)

    return lambda vector, position, length: rotary.rotate(
        vector, position, frequencies(length), layer.layout, magnitude
    )


def matrices(layer):
    """The projections of a built `SelfAttention`; columns of the first: queries, keys, values."""
    queries = layer.heads * layer.head_width
    keys = queries + layer.key_value_heads * layer.head_width
    named = {}
    weights = [np.array(w, "float64") for w in layer.query_key_value.get_weights()]
    for suffix, weight in zip(("", "_bias"), weights, strict=False):
        parts = np.split(weight, (queries, keys), axis=-1)
        for name, part in zip(("query", "key", "value"), parts, strict=True):
            named[name + suffix] = part
    weights = [np.array(w, "float64") for w in layer.output_projection.get_weights()]
    for suffix, weight in zip(("", "_bias"), weights, strict=False):
        named["output" + suffix] = weight
    return named


def cross_attention(layer, x, memory, memory_valid):
    """Output and weights that a built `CrossAttention` should give."""
    names = {"query": ["query"], "key_value": ["key", "value"], "output_projection": ["output"]}
    matrices = {}
    for part, parts in names.items():
        weights = [np.array(w, "float64") for w in getattr(layer, part).get_weights()]
        for suffix, weight in zip(("", "_bias"), weights, strict=False):
            split = np.split(weight, len(parts), axis=-1)
            matrices |= {name + suffix: x for name, x in zip(parts, split, strict=True)}
    return attention.cross_attention(
        x.astype("float64"),
        memory.astype("float64"),
        memory_valid,
        matrices,
        layer.heads,
        layer.head_width,
        layer.key_value_heads,
        layer.scale,
    )


def self_attention(layer, x, positions, valid, bias=None, segment_ids=None):
    """Output and weights that a built `SelfAttention` should give."""
    optional = {}
    if layer.rotary is not None:
        optional["rotate"] = rotate(layer.rotary, layer.head_width)
    if layer.query_norm is not None:
        optional |= {"query_norm": norm(layer.query_norm), "key_norm": norm(layer.key_norm)}
    return attention.self_attention(
        x.astype("float64"),
        valid,
        positions,
        matrices(layer),
        layer.heads,
        layer.head_width,
        layer.key_value_heads,
        segment_ids=segment_ids,
        bias=bias,
        causal=layer.causal,
        window=layer.window,
        logit_cap=layer.logit_cap,
        scale=layer.scale,
        **optional,
    )


def attention_sublayer(layer, positions, valid, bias=None, segment_ids=None):
    """The output of `self_attention` as a function of x."""
    return lambda x: self_attention(layer, x, positions, valid, bias, segment_ids)[0]
