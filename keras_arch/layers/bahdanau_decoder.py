"""The decoder of Bahdanau et al. 2015."""

import keras

from keras_arch.layers.attention_decoder import AttentionDecoder


@keras.saving.register_keras_serializable(package="keras_arch")
class BahdanauDecoder(AttentionDecoder):
    """Attends first, from the state before the step; then the cells read input and context.

    ```
    c_t = attention(h_{t-1}, memory)
    h_t = cells([x_t, c_t], h_{t-1})
    output_t = tanh(W [c_t, h_t])
    ```

    Source: Bahdanau et al. 2015, section 3.1 and appendix A.2.2, whose output layer, a maxout that
    reads the input as well, is here `AttentionDecoder`'s. Arguments as there.
    """

    def fed_width(self, memory_width):
        return memory_width

    def advance(self, state, step, reads):
        h = self.last_h(state["cells"])
        state, context, weights = self.attend(h, state, step, reads)
        projected = step["projected"] + reads.layers["fed"](context)
        cells = self.advance_cells(projected, state["cells"], step["valid"], reads)
        made = {"h": self.last_h(cells), "context": context, "weights": weights}
        return {**state, "cells": cells}, made
