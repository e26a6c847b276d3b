"""Position-wise feed-forward networks; the residual is added by the residual part, not here."""

import keras
from keras import ops

from keras_arch.checks import check_positive, check_rate
from keras_arch.layers.activations import get_activation
from keras_arch.layers.dropout import Dropout
from keras_arch.layers.part import Part, fresh


@keras.saving.register_keras_serializable(package="keras_arch")
class FeedForward(Part):
    """`down(activation(up(x)))`. Source: Vaswani et al. 2017, section 3.3.

    Args:
        hidden_width: Width between the two matrices.
        activation: Name or function; `"gelu_tanh"` for GPT-2.
        use_bias: Whether the two matrices have biases.
        dropout: Rate of dropped hidden units.
        kernel_initializer: Initializer of the first matrix.
        output_initializer: Initializer of the second; default `kernel_initializer`.

    Call arguments:
        x: float `[B, T, D]`.

    Returns:
        float `[B, T, D]`.
    """

    #: Columns of the first matrix for each hidden unit.
    branches = 1

    def __init__(
        self,
        hidden_width,
        activation="relu",
        use_bias=True,
        dropout=0.0,
        kernel_initializer="glorot_uniform",
        output_initializer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive(hidden_width=hidden_width)
        check_rate(dropout=dropout)
        self.hidden_width = hidden_width
        self.activation = get_activation(activation)
        self.use_bias = use_bias
        self.dropout = dropout
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.output_initializer = keras.initializers.get(output_initializer or kernel_initializer)
        self.drop = Dropout(dropout, dtype=self.dtype_policy, name="drop")

    def build(self, x_shape):
        self.up = self._matrix(self.branches * self.hidden_width, self.kernel_initializer, "up")
        self.up.build(x_shape)
        self.down = self._matrix(x_shape[-1], self.output_initializer, "down")
        self.down.build((*x_shape[:-1], self.hidden_width))

    def _matrix(self, units, initializer, name):
        return keras.layers.Dense(
            units,
            use_bias=self.use_bias,
            kernel_initializer=fresh(initializer),
            dtype=self.dtype_policy,
            name=name,
        )

    def call(self, x):
        return self.down(self.drop(self.hidden(x)))

    def hidden(self, x):
        """Returns the hidden units, float `[B, T, hidden_width]`."""
        return self.activation(self.up(x))

    def compute_output_spec(self, x):
        return keras.KerasTensor(x.shape, self.compute_dtype)


@keras.saving.register_keras_serializable(package="keras_arch")
class GatedFeedForward(FeedForward):
    """`down(activation(gate(x)) * up(x))`: SwiGLU with "silu", GEGLU with "gelu".

    Source: Shazeer 2020, section 2. The gate and the value are one matrix, the gate first.
    Arguments as in `FeedForward`.
    """

    branches = 2

    def hidden(self, x):
        """Returns the gated hidden units, float `[B, T, hidden_width]`."""
        gate, value = ops.split(self.up(x), 2, axis=-1)
        return self.activation(gate) * value
