"""Activations by the names that papers and checkpoints use."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_arch")
def gelu_tanh(x):
    """GELU by its tanh approximation, as in GPT-2 and BERT's first code (Hendrycks & Gimpel 2016).

    Keras's own `"gelu"` is the exact form by erf.
    """
    return ops.gelu(x, approximate=True)


def get_activation(activation):
    """Returns the function for a name ("gelu_tanh" or any of Keras's) or a callable."""
    if activation == "gelu_tanh":
        return gelu_tanh
    return keras.activations.get(activation)
