"""Recurrent decoders that attend to a memory at every step."""

from typing import NamedTuple

import keras
from keras import ops, tree

from keras_arch.backend import recur, scan
from keras_arch.layers import looped_dense
from keras_arch.layers.context_attention import Reads
from keras_arch.layers.part import Part, fresh


class LoopReads(NamedTuple):
    """What a step of an `AttentionDecoder` reads beside its state and input.

    Attributes:
        memory: What the attention's `project` made of the memory; in a loop of `backend.recur`
            without "value", for which `attention.mix` stands.
        layers: Functions, nested as in `loop_layers`.
        attention: What stands for the attention's weights in a loop of `backend.recur`, else None.
        cells: For each cell what its `advance` takes as `multiply` and `shared`.
    """

    memory: dict | None
    layers: dict
    attention: Reads | None
    cells: list


class AttentionDecoder(Part):
    """Runs a stack of recurrent layers, and attention to a memory from the state of the last.

    The subclass says in which order. The output is `tanh(W [context, h])` (Luong et al. 2015,
    equation 5). A pad leaves the state as it is. The keys of the memory are made once, and so is,
    outside the loop, the product of all inputs with the first layer's matrix; what is fed back
    enters the first layer by a matrix of its own, as if it were joined to the input.

    Args:
        attention: A `ContextAttention`. One that reads coverage gets the sum of the weights of the
            steps before; one that reads inputs, `[x, h]` as its query.
        cells: List of `Recurrent` layers, the first at the bottom. Only their steps are used.
        width: Of the output; default that of the last cell.
        kernel_initializer: Initializer of W and of the matrix for what is fed back.

    Call arguments:
        x: float `[B, T, D]`.
        valid: bool `[B, T]`, True = real token.
        memory: float `[B, S, M]`.
        memory_valid: bool `[B, S]`.
        initial_state: Optional list of float `[B, cell's width]`, the states of the first cell,
            then those of the second, ...; default 0.

    Returns:
        float `[B, T, width]`.

    Raises:
        ValueError: If there is no cell, one runs in reverse, or `initial_state` has not one tensor
            for each state.
    """

    def __init__(self, attention, cells, width=None, kernel_initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        _check_cells(cells)
        self.attention = attention
        self.cells = list(cells)
        self.width = cells[-1].width if width is None else width
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.output_projection = self._projection(self.width, True, "output_projection")

    def _projection(self, width, use_bias, name):
        return keras.layers.Dense(
            width,
            activation="tanh" if use_bias else None,
            use_bias=use_bias,
            kernel_initializer=fresh(self.kernel_initializer),
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, x_shape, memory_shape):
        width, memory_width = x_shape[-1], memory_shape[-1]
        for cell in self.cells:
            cell.build((None, None, width))
            width = cell.width
        query_width = width + x_shape[-1] if self.attention.reads_inputs else width
        self.attention.build((None, None, query_width), (None, None, memory_width))
        self.output_projection.build((None, None, memory_width + width))
        fed_width = self.fed_width(memory_width)
        if fed_width:
            columns = self.cells[0].gates * self.cells[0].width
            self.fed_projection = self._projection(columns, False, "fed_projection")
            self.fed_projection.build((None, fed_width))

    def fed_width(self, memory_width):
        """Returns the width of what enters the first cell beside the input; 0 if nothing does."""
        raise NotImplementedError

    def call(self, x, valid, memory, memory_valid, initial_state=None):
        return self._run_whole(x, valid, memory, memory_valid, initial_state)[1]

    def compute_output_spec(self, x, valid, memory, memory_valid, initial_state=None):
        return keras.KerasTensor((*x.shape[:-1], self.width), self.compute_dtype)

    def attention_weights(self, x, valid, memory, memory_valid, initial_state=None):
        """Returns the weights of all steps, float32 `[B, T, S]`; at pads, zeros."""
        weights = self._run_whole(x, valid, memory, memory_valid, initial_state)[2]
        return ops.where(valid[..., None], weights, 0.0)

    def start(self, batch, length, memory, memory_valid, initial_state=None):
        """Returns the state before the first token.

        `memory`: what the attention makes of the memory; `cells`: their states, by number; and
        `coverage`, float32 `[B, S]`: the sum of the weights that each vector of the memory got.
        """
        return {
            "memory": self.attention.project(memory, memory_valid),
            "cells": self._begin_cells(batch, initial_state),
            "coverage": ops.zeros((batch, ops.shape(memory)[1]), "float32"),
        }

    def step(self, x, valid, *, state, cursor):
        """Continues the row: returns what `call` does for the chunk, and the new state."""
        state, output, weights = self._run(x, valid, state)
        if not self.attention.reads_coverage:
            seen = ops.sum(ops.where(valid[..., None], weights, 0.0), axis=1)
            state = {**state, "coverage": state["coverage"] + seen}
        return output, state

    def loop_layers(self):
        """Returns the `keras.layers.Dense` that `advance` calls, each once: nested, by name."""
        layers = {"attention": self.attention.query_layers()}
        return {**layers, "fed": self.fed_projection} if hasattr(self, "fed_projection") else layers

    def advance(self, state, step, reads):
        """Does one step: the body of the loop.

        Args:
            state: As `start` returns, without the memory.
            step: Dict: `projected` float `[B, gates * D]`, the first cell's; `valid` bool `[B]`;
                and `x` float `[B, D]`, if the attention reads inputs.
            reads: A `LoopReads`.

        Returns:
            The new state, and a dict of what `finish` reads.
        """
        raise NotImplementedError

    def finish(self, made, x, memory):
        """Returns the output `[B, T, width]` and the weights `[B, T, S]`, after the loop.

        Args:
            made: What `advance` made, `[B, T, ...]` each.
            x: float `[B, T, D]`.
            memory: What the attention's `project` made of it.
        """
        return self.attentional(made["context"], made["h"]), made["weights"]

    def attentional(self, context, h):
        """Returns `tanh(W [context, h])`."""
        return self.output_projection(ops.concatenate([context, h], axis=-1))

    def attend(self, h, state, step, reads):
        """Attends from one step: returns the state with its coverage, context `[B, M]`, weights."""
        query = self.query(h, step.get("x"))[:, None]
        coverage = state["coverage"][:, None] if self.attention.reads_coverage else None
        context, weights = self.attention.attend(query, reads.memory, coverage, reads.attention)
        if self.attention.reads_coverage:
            seen = ops.where(step["valid"][:, None], weights[:, 0], 0.0)
            state = {**state, "coverage": state["coverage"] + seen}
        return state, context[:, 0], weights[:, 0]

    def query(self, h, x):
        """Returns what the attention reads of a state and an input, `[..., any]` each."""
        return ops.concatenate([x, h], axis=-1) if self.attention.reads_inputs else h

    def advance_cells(self, projected, states, valid, reads):
        """Returns the cells' states after a step.

        Args:
            projected: float `[B, gates * D]`, all that the first cell reads.
            states: Their states before.
            valid: bool `[B]`.
            reads: As in `advance`.
        """
        new = {}
        for i, (cell, own) in enumerate(zip(self.cells, reads.cells, strict=True)):
            if i:
                projected = cell.project(new[_cell_name(i - 1)]["h"], *own)
            name = _cell_name(i)
            new[name] = cell.advance(projected, states[name], valid, *own)
        return new

    def last_h(self, states):
        """Returns the output of the last cell, float `[B, D]`."""
        return states[_cell_name(len(self.cells) - 1)]["h"]

    def _begin_cells(self, batch, initial_state):
        if initial_state is not None:
            initial_state = list(initial_state)
            wanted = sum(len(cell.state_names) for cell in self.cells)
            if len(initial_state) != wanted:
                raise ValueError(
                    f"initial_state must hold {wanted} tensors, the states of each cell in turn; "
                    f"received {len(initial_state)}."
                )
        states = {}
        for i, cell in enumerate(self.cells):
            own = None
            if initial_state is not None:
                own = [initial_state.pop(0) for _ in cell.state_names]
            states[_cell_name(i)] = cell.begin(batch, own)
        return states

    def _run_whole(self, x, valid, memory, memory_valid, initial_state):
        batch, length = ops.shape(x)[:2]
        return self._run(x, valid, self.start(batch, length, memory, memory_valid, initial_state))

    def _run(self, x, valid, state):
        """Returns the new state, the outputs and the weights."""
        memory = state["memory"]
        left = {"memory"} if self.attention.reads_coverage else {"memory", "coverage"}
        own = {name: value for name, value in state.items() if name not in left}
        x = ops.cast(ops.where(valid[..., None], x, 0.0), self.compute_dtype)
        steps = ops.swapaxes(x, 0, 1)
        inputs = {"projected": self.cells[0].project(steps), "valid": ops.transpose(valid)}
        if self.attention.reads_inputs:
            inputs["x"] = steps
        own, made = self._loop(own, inputs, memory)
        made = tree.map_structure(lambda y: ops.swapaxes(y, 0, 1), made)
        output, weights = self.finish(made, x, memory)
        return {**state, **own}, output, weights

    def _loop(self, state, inputs, memory):
        """Runs `advance` over the steps: returns what `scan` does."""
        layers, batch = self.loop_layers(), ops.shape(inputs["valid"])[1]
        cells = [cell.shared(batch, inside=i > 0) for i, cell in enumerate(self.cells)]
        if inputs["valid"].shape[0] == 1 or not looped_dense.can_loop(layers):
            reads = LoopReads(memory, layers, None, [(None, shared) for shared in cells])
            return scan(lambda state, step: self.advance(state, step, reads), state, inputs)

        def body(state, step, multiply, shared):
            calls = looped_dense.calls(layers, multiply["layers"], shared["biases"])
            attention = None
            if "attention" in layers:
                attention = Reads(calls["attention"], shared["attention"], multiply["value"])
            cells = list(zip(multiply["cells"], shared["cells"], strict=True))
            memory = shared.get("memory")
            return self.advance(state, step, LoopReads(memory, calls, attention, cells))

        matrices = {
            "layers": looped_dense.kernels(layers),
            "cells": [cell.matrices(inside=i > 0) for i, cell in enumerate(self.cells)],
        }
        shared = {"biases": looped_dense.biases(layers), "cells": cells}
        if "attention" in layers:
            matrices["value"] = memory["value"]
            shared["attention"] = self.attention.query_weights()
            shared["memory"] = {name: x for name, x in memory.items() if name != "value"}
        return recur(body, state, inputs, matrices, shared)


def _cell_name(i):
    return f"cell_{i}"


def _check_cells(cells):
    if not isinstance(cells, list | tuple) or not cells:
        raise ValueError(f"cells must be a list of recurrent layers; received cells={cells!r}.")
    for cell in cells:
        if getattr(cell, "reverse", True):
            raise ValueError(
                "cells must be recurrent layers that run forward; received "
                f"{getattr(cell, 'name', cell)!r} with reverse={getattr(cell, 'reverse', None)}."
            )
