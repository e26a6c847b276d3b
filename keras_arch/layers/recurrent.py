"""What recurrent layers share: how they go over the time."""

import keras
from keras import ops

from keras_arch.backend import fused_recurrence, recur
from keras_arch.layers.recurrent_cell import RecurrentCell


class Recurrent(RecurrentCell):
    """Carries a state from one real token to the next; the subclass says what one step does.

    A pad, wherever it stands, leaves the state as it is, and the output there is the state's `h`: a
    row of pads alone ends with the state it began with. What pads hold does not matter.

    The input is multiplied for all steps at once, outside the loop.

    Args:
        width: As in `RecurrentCell`; so are the arguments that are not named here.
        reverse: Whether the last token comes first. Outputs stand where their tokens do.
        return_state: Whether the last state is returned too.

    Call arguments:
        x: float `[B, T, D_in]`.
        valid: bool `[B, T]`, True = real token.
        initial_state: Optional list of float `[B, D]`, in the order of `state_names`; default 0.

    Returns:
        float `[B, T, D]`; with `return_state` a tuple of it and the states `[B, D]` after the last
        step.

    Raises:
        ValueError: As `RecurrentCell`; or if `initial_state` has not one tensor `[B, D]` for each
            state.
    """

    #: Which of `backend.fused_recurrence`'s kinds does the same, if one does.
    fused_name = None

    def __init__(self, width, *, reverse=False, return_state=False, **kwargs):
        super().__init__(width, **kwargs)
        self.reverse = reverse
        self.return_state = return_state

    def call(self, x, valid, initial_state=None):
        state = self.begin(ops.shape(x)[0], initial_state)
        return self._outputs(*self._run(x, valid, state))

    def compute_output_spec(self, x, valid, initial_state=None):
        sequence = keras.KerasTensor((*x.shape[:-1], self.width), self.compute_dtype)
        if not self.return_state:
            return sequence
        shape = (x.shape[0], self.width)
        return (
            sequence,
            *(keras.KerasTensor(shape, self._state_dtype(n)) for n in self.state_names),
        )

    def start(self, batch, length, initial_state=None):
        """Returns the state before the first token: float `[B, D]` by the names of `state_names`.

        Raises:
            ValueError: If the layer runs in reverse: earlier outputs would change with later
                tokens.
        """
        if self.reverse:
            raise ValueError(f"{self.name} cannot decode step by step; received reverse=True.")
        return self.begin(batch, initial_state)

    def step(self, x, valid, *, state, cursor):
        """Continues the row: returns what `call` does for the chunk, and the new state."""
        state, sequence = self._run(x, valid, state)
        return self._outputs(state, sequence), state

    def _run(self, x, valid, state):
        """Returns the last state, and the outputs `[B, T, D]`."""

        def body(state, step, multiply, shared):
            state = self.advance(step["projected"], state, step["valid"], multiply, shared)
            return state, state["h"]

        x = self._cast(ops.where(valid[..., None], x, 0.0))
        fused = self._run_fused(x, valid, state)
        if fused is not None:
            return fused
        projected = self.project(ops.swapaxes(x, 0, 1))
        state, sequence = recur(
            body,
            state,
            {"projected": projected, "valid": ops.transpose(valid)},
            self.matrices(),
            self.shared(ops.shape(x)[0]),
            self.reverse,
        )
        return state, ops.swapaxes(sequence, 0, 1)

    def _run_fused(self, x, valid, state):
        """Returns what `_run` does, by the backend's own kernel; None where it has none."""
        if self.recurrent_dropout or self.normalise or self.fused_name is None:
            return None
        made = fused_recurrence(
            self.fused_name,
            x,
            valid,
            [state[name] for name in self.state_names],
            (self._cast(self.kernel), self._cast(self.recurrent_kernel)),
            self._fused_biases(),
            self.reverse,
        )
        if made is None:
            return None
        last, sequence = made
        return dict(zip(self.state_names, last, strict=True)), sequence

    def _fused_biases(self):
        bias = self._cast(self.bias)
        return bias, ops.zeros_like(bias)

    def _outputs(self, state, sequence):
        if not self.return_state:
            return sequence
        return (sequence, *(state[name] for name in self.state_names))
