"""One step of a recurrent layer: its weights, its state and what a subclass makes of them."""

import keras
from keras import ops

from keras_arch.checks import check_positive, check_rate
from keras_arch.layers.dropout import Dropout
from keras_arch.layers.norms import layer_norm
from keras_arch.layers.part import Part, fresh
from keras_arch.layers.products import multiply_rows

# Added to the variance by the layer norms.
EPSILON = 1e-5


class RecurrentCell(Part):
    """Holds the weights of a recurrent layer and does one step; `Recurrent` goes over the time.

    A loop of one's own uses the same pieces:

    ```
    state = layer.begin(batch, initial_state)
    state = layer.advance(layer.project(x_t), state, valid_t)  # [B, D_in], [B]; the output is "h"
    ```

    In half precision, products are in the compute type; what is added up over the steps (`c` of an
    LSTM) and the arithmetic of the gates are float32.

    Args:
        width: D, of the state and the output.
        recurrent_dropout: Rate of dropped units of `h` where it is multiplied, the same ones at all
            steps of a row (Gal & Ghahramani 2016, section 4).
        normalise: Whether layer norm is applied to the input's product and to the state's (Ba et
            al. 2016, supplementary material).
        kernel_initializer: Initializer of the input's matrix.
        recurrent_initializer: Initializer of the state's matrix.

    Raises:
        ValueError: If `width` is not positive or a rate is outside [0, 1).
    """

    #: Blocks of D columns in the matrices.
    gates = 1
    #: The state's tensors; "h" is the output.
    state_names = ("h",)

    def __init__(
        self,
        width,
        *,
        recurrent_dropout=0.0,
        normalise=False,
        kernel_initializer="glorot_uniform",
        recurrent_initializer="orthogonal",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive(width=width)
        check_rate(recurrent_dropout=recurrent_dropout)
        self.width = width
        self.recurrent_dropout = recurrent_dropout
        self.normalise = normalise
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.recurrent_initializer = keras.initializers.get(recurrent_initializer)
        self.drop = Dropout(recurrent_dropout, dtype=self.dtype_policy, name="drop")

    @classmethod
    def _argument_names(cls):
        # A subclass names the arguments that it adds, and hands the others on.
        names = super()._argument_names()
        if cls is not RecurrentCell:
            names += [name for name in cls.__base__._argument_names() if name not in names]
        return names

    def build(self, x_shape):
        columns = self.gates * self.width
        self.kernel = self.add_weight(
            shape=(x_shape[-1], columns), initializer=fresh(self.kernel_initializer), name="kernel"
        )
        self.recurrent_kernel = self.add_weight(
            shape=(self.width, columns),
            initializer=fresh(self.recurrent_initializer),
            name="recurrent_kernel",
        )
        self.bias = self.add_weight(shape=(columns,), initializer=self._first_bias, name="bias")
        if self.normalise:
            self.input_scale = self._add_scale(columns, "input_scale")
            self.recurrent_scale = self._add_scale(columns, "recurrent_scale")

    def _add_scale(self, columns, name):
        return self.add_weight(shape=(columns,), initializer="ones", name=name)

    def _first_bias(self, shape, dtype):
        return ops.zeros(shape, dtype)

    def begin(self, batch, initial_state=None):
        """Returns a state: dict of float `[B, D]` by the names of `state_names`."""
        if initial_state is None:
            shape = (batch, self.width)
            return {name: ops.zeros(shape, self._state_dtype(name)) for name in self.state_names}
        self._check_state(initial_state)
        pairs = zip(self.state_names, initial_state, strict=True)
        return {name: ops.cast(value, self._state_dtype(name)) for name, value in pairs}

    def project(self, x, multiply=None, shared=None):
        """Returns the part of the gates that needs no state: float `[..., gates * D]`.

        Args:
            x: float `[..., D_in]`.
            multiply: As in `advance`, with `inside=True`; so is `shared`.
        """
        x = self._cast(x)
        shared = self._input_shared() if shared is None else shared
        x = multiply_rows(x, self._cast(self.kernel)) if multiply is None else multiply["input"](x)
        if self.normalise:
            x = ops.cast(_scaled_norm(x, shared["input_scale"]), self.compute_dtype)
        return x + shared["bias"]

    def _input_shared(self):
        shared = {"bias": self._cast(self.bias)}
        if self.normalise:
            shared["input_scale"] = _float32(self.input_scale)
        return shared

    def advance(self, projected, state, valid, multiply=None, shared=None):
        """Returns the state after one step; in rows that are pads, the state before it.

        Args:
            projected: float `[B, gates * D]`, from `project`.
            state: From `begin` or the step before.
            valid: bool `[B]`.
            multiply: In a loop of `backend.recur`, what it hands to its body, made from
                `matrices`; may be left out elsewhere.
            shared: From `shared`, once for all steps of a row; may be left out for one step.
        """
        if multiply is None:
            multiply = {"recurrent": lambda h: ops.matmul(h, self.matrices()["recurrent"])}
        if shared is None:
            shared = self.shared(ops.shape(projected)[0])
        h = state["h"] * shared["noise"] if self.recurrent_dropout else state["h"]
        product = _float32(multiply["recurrent"](h))
        if self.normalise:
            product = _scaled_norm(product, shared["recurrent_scale"])
        new = self.combine(_float32(projected), product, state, shared)
        return {
            name: ops.where(valid[:, None], ops.cast(value, state[name].dtype), state[name])
            for name, value in new.items()
        }

    def combine(self, projected, product, state, shared):
        """Returns the new state, float32, from the two products `[B, gates * D]`, float32."""
        raise NotImplementedError

    def matrices(self, inside=False):
        """Returns what a step multiplies by: dict of float `[any, gates * D]`.

        Args:
            inside: Whether the loop calls `project` as well.
        """
        matrices = {"recurrent": self._cast(self.recurrent_kernel)}
        return {**matrices, "input": self._cast(self.kernel)} if inside else matrices

    def shared(self, batch, inside=False):
        """Returns the other tensors that every step reads, the dropout of these rows included.

        Args:
            batch: Rows.
            inside: As in `matrices`.
        """
        shared = self._input_shared() if inside else {}
        if self.recurrent_dropout:
            shared["noise"] = self.drop(ops.ones((batch, self.width), self.compute_dtype))
        if self.normalise:
            shared["recurrent_scale"] = _float32(self.recurrent_scale)
        return shared

    def _state_dtype(self, name):
        return self.compute_dtype if name == "h" else "float32"

    def _cast(self, x):
        return ops.cast(x, self.compute_dtype)

    def _check_state(self, state):
        shapes = [tuple(getattr(x, "shape", ())) for x in state] if _is_list(state) else state
        wanted = [self.width] * len(self.state_names)
        if not _is_list(state) or [shape[-1:] for shape in shapes] != [(w,) for w in wanted]:
            raise ValueError(
                f"initial_state must be a list of {len(wanted)} tensors [B, {self.width}], "
                f"{list(self.state_names)}; received shapes {shapes}."
            )


def _is_list(x):
    return isinstance(x, list | tuple)


def _scaled_norm(x, scale):
    scale = _float32(scale)
    return layer_norm(_float32(x), scale, ops.zeros_like(scale), EPSILON)


def _float32(x):
    return ops.cast(x, "float32")
