"""The moving average of a model's weights, which is what is evaluated and kept."""

import keras
import numpy as np


class EvaluateAverages(keras.callbacks.Callback):
    """Puts the optimizer's averages in the place of the weights while a model is evaluated.

    Then the weights come back, bit for bit: an evaluation changes no training. Keras'
    `SwapEMAWeights` swaps by sums on TensorFlow, which round. The weights wait on the host, so
    that an accelerator needs no room for them.
    """

    def on_test_begin(self, logs=None):
        variables = self.model.trainable_variables
        # PyTorch's arrays share memory with its tensors.
        self.weights = [np.array(keras.ops.convert_to_numpy(v.value)) for v in variables]
        keep_averages(self.model)

    def on_test_end(self, logs=None):
        for variable, value in zip(self.model.trainable_variables, self.weights, strict=True):
            variable.assign(value)
        del self.weights


def has_averages(optimizer):
    """Returns whether an optimizer, or the one that a loss scale wraps, averages weights."""
    return getattr(optimizer, "inner_optimizer", optimizer).use_ema


def keep_averages(model):
    """Gives a model the averages as its weights, if its optimizer has any."""
    model.optimizer.finalize_variable_values(model.trainable_variables)
    if has_averages(model.optimizer):
        for variable in model.trainable_variables:
            # Keras hands over the averages' own arrays, which JAX's next step would take away.
            variable.assign(keras.ops.copy(variable.value))
