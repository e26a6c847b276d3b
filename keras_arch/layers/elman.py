"""The simple recurrent network."""

import keras

from keras_arch.layers.activations import get_activation
from keras_arch.layers.recurrent import Recurrent


@keras.saving.register_keras_serializable(package="keras_arch")
class ElmanRNN(Recurrent):
    """`h = activation(x W + h U + b)`. Source: Elman 1990.

    Args:
        width: As in `Recurrent`; so are the arguments below that are not named here.
        activation: Name or function; "sigmoid" in Mikolov et al. 2010, section 2.
    """

    def __init__(self, width, *, activation="tanh", **kwargs):
        super().__init__(width, **kwargs)
        self.activation = get_activation(activation)

    @property
    def fused_name(self):
        """The kernel knows no activation but tanh."""
        return "RNN" if self.activation is keras.activations.tanh else None

    def combine(self, projected, product, state, shared):
        return {"h": self.activation(projected + product)}
