"""Where a model's decoders look, found by running its graph whole."""

from keras_arch.generation.graph import Ref, fill
from keras_arch.layers import (
    AttentionDecoder,
    ContextAttention,
    CrossAttention,
    CrossDecoderBlock,
    Residual,
)

ATTENDING = (AttentionDecoder, ContextAttention, CrossAttention, CrossDecoderBlock)


def attending_calls(graph):
    """Returns the calls of a model's graph that attend to a source."""
    return [call for call in graph.calls if _attends(call.layer)]


def _attends(layer):
    return isinstance(layer.sublayer if isinstance(layer, Residual) else layer, ATTENDING)


def attending_weights(graph, inputs):
    """Returns the weights by which each attends, under teacher forcing.

    Args:
        graph: A model's graph; see `graph.read_graph`.
        inputs: Dict of tensors, by the names of the model's inputs.

    Returns:
        Dict from the layer's name to a float32 tensor `[B, T, S]`, or with heads `[B, N, T, S]`.
    """
    values = {Ref(name, 0, 0): x for name, x in inputs.items()}
    calls, weights = attending_calls(graph), {}
    for call in graph.calls:
        if call in calls:
            arguments, keywords = fill((call.arguments, call.keywords), values)
            weights[call.layer.name] = call.layer.attention_weights(*arguments, **keywords)
        call.run(values)
    return weights
