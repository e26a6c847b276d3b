"""Residual parts: how a sublayer, a norm and the residual stream go together."""

import keras

from keras_arch.checks import check_rate
from keras_arch.layers.dropout import Dropout
from keras_arch.layers.part import Part


class Residual(Part):
    """Wraps a sublayer; the subclass says where the norm stands.

    Whatever else the sublayer takes is handed through. If the sublayer decodes step by step, so
    does the wrapper.

    Args:
        sublayer: A layer from float `[B, T, D]` (and more arguments) to float `[B, T, D]`.
        norm: A norm layer over D.
        dropout: Rate of dropped outputs of the sublayer.
        adapter: Optional layer from float `[B, T, D]` to the same, between dropout and the sum; an
            `Adapter` (Houlsby et al. 2019, figure 2).
    """

    def __init__(self, sublayer, norm, dropout=0.0, adapter=None, **kwargs):
        super().__init__(**kwargs)
        check_rate(dropout=dropout)
        self.sublayer = sublayer
        self.norm = norm
        self.dropout = dropout
        self.adapter = adapter
        self.drop = Dropout(dropout, dtype=self.dtype_policy, name="drop")

    def build(self, x_shape):
        self.norm.build(x_shape)
        self.sublayer.build(x_shape)
        if self.adapter is not None:
            self.adapter.build(x_shape)

    def call(self, x, *args, **kwargs):
        return self.leave(x, self.sublayer(self.enter(x), *args, **kwargs))

    def compute_output_spec(self, x, *args, **kwargs):
        return keras.KerasTensor(x.shape, self.compute_dtype)

    def attention_weights(self, x, *args, **kwargs):
        """Returns those of the sublayer."""
        return self.sublayer.attention_weights(self.enter(x), *args, **kwargs)

    def start(self, batch, length, **context):
        """Returns the sublayer's state; `{}` if it has none."""
        return self.sublayer.start(batch, length, **context) if self._decodes else {}

    def step(self, x, *args, state, cursor, **kwargs):
        """Runs the sublayer's step inside the residual."""
        if self._decodes:
            y, state = self.sublayer.step(
                self.enter(x), *args, state=state, cursor=cursor, **kwargs
            )
        else:
            y = self.sublayer(self.enter(x), *args, **kwargs)
        return self.leave(x, y), state

    def added(self, y):
        """Returns what is added to the stream: `y` after dropout and the adapter."""
        y = self.drop(y)
        return y if self.adapter is None else self.adapter(y)

    @property
    def _decodes(self):
        return hasattr(self.sublayer, "step")


@keras.saving.register_keras_serializable(package="keras_arch")
class PreNorm(Residual):
    """`x + drop(sublayer(norm(x)))`: GPT-2 and LLaMA (Xiong et al. 2020, section 3)."""

    def enter(self, x):
        """Returns what the sublayer reads."""
        return self.norm(x)

    def leave(self, x, y):
        """Returns the stream after the sublayer's output `y`."""
        return x + self.added(y)


@keras.saving.register_keras_serializable(package="keras_arch")
class PostNorm(Residual):
    """`norm(x + drop(sublayer(x)))`: the Transformer of Vaswani et al. 2017, section 3.1."""

    def enter(self, x):
        """Returns what the sublayer reads."""
        return x

    def leave(self, x, y):
        """Returns the stream after the sublayer's output `y`."""
        return self.norm(x + self.added(y))


@keras.saving.register_keras_serializable(package="keras_arch")
class SandwichNorm(Residual):
    """`x + drop(output_norm(sublayer(norm(x))))`: CogView (Ding et al. 2021), Gemma 2.

    Args:
        sublayer: As in `Residual`.
        norm: The norm before the sublayer.
        output_norm: The norm after it.
        dropout: As in `Residual`; so is the adapter.
    """

    def __init__(self, sublayer, norm, output_norm, dropout=0.0, adapter=None, **kwargs):
        super().__init__(sublayer, norm, dropout, adapter, **kwargs)
        self.output_norm = output_norm

    def build(self, x_shape):
        super().build(x_shape)
        self.output_norm.build(x_shape)

    def enter(self, x):
        """Returns what the sublayer reads."""
        return self.norm(x)

    def leave(self, x, y):
        """Returns the stream after the sublayer's output `y`."""
        return x + self.added(self.output_norm(y))
