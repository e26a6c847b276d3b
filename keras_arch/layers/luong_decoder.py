"""The decoder of Luong et al. 2015."""

import keras
from keras import ops

from keras_arch.layers.attention_decoder import AttentionDecoder


@keras.saving.register_keras_serializable(package="keras_arch")
class LuongDecoder(AttentionDecoder):
    """Runs the cells first, then attends from their new state.

    ```
    h_t = cells([x_t, output_{t-1}], h_{t-1})   # x_t alone without input feeding
    c_t = attention(h_t, memory)
    output_t = tanh(W [c_t, h_t])
    ```

    Without input feeding (and coverage) no step depends on the attention of another: all attend
    together, after the loop.

    Source: Luong et al. 2015, sections 3 and 3.3. Arguments as in `AttentionDecoder`, and:

    Args:
        input_feeding: Whether the output before is read beside the input. Its state is `fed`.
    """

    def __init__(
        self,
        attention,
        cells,
        width=None,
        input_feeding=True,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(attention, cells, width, kernel_initializer, **kwargs)
        self.input_feeding = input_feeding

    def fed_width(self, memory_width):
        return self.width if self.input_feeding else 0

    def start(self, batch, length, memory, memory_valid, initial_state=None):
        state = super().start(batch, length, memory, memory_valid, initial_state)
        if self.input_feeding:
            state["fed"] = ops.zeros((batch, self.width), self.compute_dtype)
        return state

    def loop_layers(self):
        layers = super().loop_layers()
        if not self._attends_in_loop():
            del layers["attention"]
        return {**layers, "output": self.output_projection} if self.input_feeding else layers

    def _attends_in_loop(self):
        return self.input_feeding or self.attention.reads_coverage

    def advance(self, state, step, reads):
        projected = step["projected"]
        if self.input_feeding:
            projected = projected + reads.layers["fed"](state["fed"])
        cells = self.advance_cells(projected, state["cells"], step["valid"], reads)
        state, made = {**state, "cells": cells}, {"h": self.last_h(cells)}
        if self._attends_in_loop():
            state, context, weights = self.attend(made["h"], state, step, reads)
            made |= {"context": context, "weights": weights}
        if self.input_feeding:
            made["output"] = reads.layers["output"](ops.concatenate([context, made["h"]], axis=-1))
            fed = ops.where(step["valid"][:, None], made["output"], state["fed"])
            state = {**state, "fed": fed}
        return state, made

    def finish(self, made, x, memory):
        if "context" not in made:
            context, weights = self.attention.attend(self.query(made["h"], x), memory)
            made = {**made, "context": context, "weights": weights}
        if "output" in made:
            return made["output"], made["weights"]
        return super().finish(made, x, memory)
