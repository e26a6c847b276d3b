"""Reads a functional model's public config into a list of layer calls."""

from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops, tree


class Call(NamedTuple):
    """One call of a layer.

    Attributes:
        key: `(layer name, index of the call)`.
        layer: The layer or operation.
        arguments: Positional arguments; a tensor stands as a `Ref`.
        keywords: Keyword arguments, likewise.
    """

    key: tuple
    layer: Any
    arguments: Any
    keywords: dict

    @property
    def refs(self):
        """The tensors the call reads."""
        return [*find_refs(self.arguments), *find_refs(self.keywords)]

    @property
    def output(self):
        """The call's first output."""
        return Ref(*self.key, 0)

    @property
    def state_name(self):
        """The name of its state: the layer's, and the call's index if it is not the first."""
        name, index = self.key
        return f"{name}_call_{index}" if index else name

    def run(self, values):
        """Calls the layer on the values it reads and files its outputs among them."""
        outputs = self.layer(*fill(self.arguments, values), **fill(self.keywords, values))
        self.record(outputs, values)

    def record(self, outputs, values):
        """Files the outputs of the call among the values, a dict from `Ref` to tensor."""
        for i, output in enumerate(tree.flatten(outputs)):
            values[Ref(*self.key, i)] = output


class Ref(NamedTuple):
    """A tensor of the graph: output `output` of call `call` of layer `layer`."""

    layer: str
    call: int
    output: int

    @property
    def key(self):
        """The key of the call that made it."""
        return (self.layer, self.call)

    @property
    def name(self):
        """All of it as a string, of which `named` makes it again."""
        # Keras allows no "/" in a layer's name.
        return "/".join(map(str, self))

    @classmethod
    def named(cls, name):
        """Returns the `Ref` of a `name`."""
        layer, call, output = name.split("/")
        return cls(layer, int(call), int(output))


class Graph(NamedTuple):
    """A functional model as plain data.

    Attributes:
        inputs: The names of the input layers, in order.
        calls: The calls of all other layers, each after those it reads.
        output: The model's one output.
        specs: Input name -> `KerasTensor`.
    """

    inputs: list
    calls: list
    output: Ref
    specs: dict


def read_graph(model):
    """Returns the `Graph` of a functional model.

    Raises:
        ValueError: If the model is not functional or has not exactly one output.
    """
    if not isinstance(model, keras.Model) or not hasattr(model, "operations"):
        raise ValueError(
            f"model must be a functional keras.Model; received model={model!r}. "
            "Subclassed and sequential models have no graph to decode from."
        )
    config = model.get_config()
    outputs = _refs_of_outputs(config["output_layers"])
    if len(outputs) != 1:
        raise ValueError(
            f"model must have one output; received {len(outputs)}, of the layers "
            f"{[output.layer for output in outputs]}."
        )
    layers = {operation.name: operation for operation in model.operations}
    inputs, waiting = [], []
    for layer in config["layers"]:
        if layer["class_name"] == "InputLayer":
            inputs.append(layer["name"])
            continue
        for i, node in enumerate(layer["inbound_nodes"]):
            call = Call(
                (layer["name"], i),
                layers[layer["name"]],
                _with_refs(node["args"]),
                _with_refs(node["kwargs"]),
            )
            waiting.append(call)
    specs = {name: layers[name].output for name in inputs}
    return Graph(inputs, _in_order(waiting, {(name, 0) for name in inputs}), outputs[0], specs)


def _in_order(calls, made):
    """Sorts calls so that each stands after those it reads."""
    ordered = []
    while calls:
        ready = [call for call in calls if all(ref.key in made for ref in call.refs)]
        ordered += ready
        made |= {call.key for call in ready}
        calls = [call for call in calls if call.key not in made]
        if not ready:
            # Calls of a shared layer outside this model's inputs.
            break
    return ordered


def _with_refs(node):
    if isinstance(node, dict):
        if node.get("class_name") == "__keras_tensor__":
            return Ref(*node["config"]["keras_history"])
        if "class_name" in node and "config" in node:
            return keras.saving.deserialize_keras_object(node)
        return {key: _with_refs(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return type(node)(_with_refs(value) for value in node)
    return node


def _refs_of_outputs(node):
    if isinstance(node, dict):
        return [ref for value in node.values() for ref in _refs_of_outputs(value)]
    if len(node) == 3 and isinstance(node[0], str):
        return [Ref(*node)]
    return [ref for value in node for ref in _refs_of_outputs(value)]


def find_refs(node):
    """Returns the `Ref`s in nested arguments."""
    if isinstance(node, Ref):
        return [node]
    if isinstance(node, dict):
        return [ref for value in node.values() for ref in find_refs(value)]
    if isinstance(node, list | tuple):
        return [ref for value in node for ref in find_refs(value)]
    return []


def fill(node, values):
    """Returns nested arguments with each `Ref` replaced by its value."""
    if isinstance(node, Ref):
        return values[node]
    if isinstance(node, dict):
        return {key: fill(value, values) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return type(node)(fill(value, values) for value in node)
    return node


def time_values(token_ids, valid):
    """Returns the values of the time inputs, by `Ref`."""
    values = {
        "token_ids": token_ids,
        "valid": valid,
        # A row that is decoded holds one document.
        "segment_ids": ops.ones_like(token_ids),
    }
    return {Ref(name, 0, 0): value for name, value in values.items()}


def ones(spec, rows, length):
    """Returns ones for an input, numpy; its open axes get `length` entries."""
    shape = [rows, *(length if size is None else size for size in spec.shape[1:])]
    return np.ones(shape, keras.backend.standardize_dtype(spec.dtype))
