"""Which head a functional model has, by its inputs and by the layer that makes its output."""

import keras

from keras_arch import layers
from keras_arch.generation.graph import read_graph
from keras_arch.serving.answers import Answers
from keras_arch.serving.fillings import Fillings
from keras_arch.serving.tags import Tags
from keras_arch.serving.text_heads import Classification, Embedding, Similarity

#: Layer that makes the output, and the output's axes -> what serves it.
HEADS = {
    (keras.layers.UnitNormalization, 2): Embedding,
    (keras.layers.Dense, 2): Classification,
    (keras.layers.Dense, 3): Tags,
    (layers.SpanScores, 3): Answers,
    (layers.AddBias, 3): Fillings,
}


def head_of(model):
    """Returns the class that serves a model with a head of `keras_arch.models`, or None.

    Raises:
        ValueError: If the model is not functional or has not exactly one output.
    """
    graph = read_graph(model)
    # A dict or a list has no shape.
    axes = len(getattr(model.output, "shape", ()))
    if "first_token_ids" in graph.inputs:
        return Similarity if axes == 1 else None
    last = {layer.name: layer for layer in model.operations}[graph.output.layer]
    # Logits of classes are what no function was put on.
    if getattr(last, "activation", keras.activations.linear) is not keras.activations.linear:
        return None
    head = HEADS.get((type(last), axes))
    return head if ("masked_positions" in graph.inputs) == (head is Fillings) else None


def layers_of(model):
    """Yields the layers of a model, and those of the models among them."""
    for layer in model.layers:
        yield layer
        if isinstance(layer, keras.Model):
            yield from layers_of(layer)
