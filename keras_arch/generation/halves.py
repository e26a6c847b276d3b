"""The two halves of an encoder-decoder, as models of the same layers."""

import keras

from keras_arch.generation.graph import Ref, read_graph
from keras_arch.models.encoder_decoder import MEMORY


def encoder_of(model):
    """Returns the encoder of an encoder-decoder.

    Args:
        model: From `transformer`, `t5` or `bart`; or any functional model whose encoder ends in a
            layer named "source_memory" and reads the inputs that are named "source_...".

    Returns:
        A functional model from `source_ids` int32 `[B, S]` and `source_valid` bool `[B, S]` to the
        memory, float `[B, S, D]`. Its layers are those of `model`.

    Raises:
        ValueError: If the model has no layer named "source_memory".
    """
    memory = _memory(model)
    inputs = {x.name: x for x in model.inputs if x.name.startswith("source_")}
    return keras.Model(inputs, memory, name=f"{model.name}_encoder")


def decoder_of(model):
    """Returns the decoder of an encoder-decoder, which generates as the whole does.

    ```
    memory = encoder_of(model)(source)
    context = {"source_memory": memory, "source_valid": source["source_valid"]}
    ka.generate(decoder_of(model), prompts, max_new_tokens=20, context=context)
    ```

    Args:
        model: As for `encoder_of`.

    Returns:
        A functional model from `source_memory` float `[B, S, D]`, `source_valid` bool `[B, S]`,
        `token_ids` int32 `[B, T]` and `valid` bool `[B, T]` to logits `[B, T, V]`. Its layers are
        those of `model`.

    Raises:
        ValueError: If the model has no layer named "source_memory".
    """
    specs = {MEMORY: _memory(model), **{x.name: x for x in model.inputs}}
    graph = read_graph(model)
    # From the output back to the memory and to the inputs.
    needed = {graph.output.key}
    calls = []
    for call in reversed(graph.calls):
        if call.key in needed and call.layer.name != MEMORY:
            needed |= {ref.key for ref in call.refs}
            calls.append(call)
    inputs = {
        name: keras.Input(batch_shape=x.shape, dtype=x.dtype, name=name)
        for name, x in specs.items()
        if (name, 0) in needed
    }
    values = {Ref(name, 0, 0): x for name, x in inputs.items()}
    for call in reversed(calls):
        call.run(values)
    return keras.Model(inputs, values[graph.output], name=f"{model.name}_decoder")


def _memory(model):
    """Returns the encoder's output, symbolic `[B, S, D]`."""
    names = [layer.name for layer in model.layers]
    inputs = [layer.name for layer in model.layers if isinstance(layer, keras.layers.InputLayer)]
    if MEMORY not in names or MEMORY in inputs:
        raise ValueError(
            f"model must have an encoder that ends in a layer named {MEMORY!r}; received "
            f"{model.name!r} with the layers {names}."
        )
    return model.get_layer(MEMORY).output
