"""Decoding derived from a functional model's own graph."""

import functools

import keras
from keras import ops

from keras_arch.backend import concrete
from keras_arch.checks import check_positive
from keras_arch.generation.graph import Ref, fill, find_refs, ones, read_graph, time_values
from keras_arch.generation.self_check import check_steps, needs_check, refuse_encoders
from keras_arch.generation.states import LENGTHS, find_slot_axes
from keras_arch.layers.embedding import TokenEmbedding
from keras_arch.layers.positions import shortest_context

TIME_INPUTS = ("token_ids", "valid", "segment_ids")


class Stepper:
    """Runs a functional model a chunk of tokens at a time, keeping state between chunks.

    The graph is read once. What depends on the context inputs alone (an encoder) runs in `start`;
    what depends on `token_ids` or `valid` runs at every `step`. A layer there that mixes time steps
    (attention, recurrence, positions) owns `start` and `step`; any other is just called.

    ```
    stepper = Stepper(model)
    state = stepper.start(batch=2, length=64)
    logits, state = stepper.step(prompt, valid, state)      # [2, T, V]
    logits, state = stepper.step(next_token, valid, state)  # [2, 1, V]
    ```

    State is a nested dict of tensors, the batch on axis 0, and two scalars: `cursor`, the slots
    written so far, and `length`, those there are. Nothing is kept on the stepper or on the layers.

    Args:
        model: A functional `keras.Model` with the inputs `token_ids` int32 `[B, T]` and `valid`
            bool `[B, T]`, maybe context inputs, and one output with time on axis 1.

    Raises:
        ValueError: If the model has not these inputs, or a layer on the time side mixes time steps
            and has no (right) `step`; the message names it.
    """

    def __init__(self, model):
        self.graph = read_graph(model)
        missing = [name for name in TIME_INPUTS[:2] if name not in self.graph.inputs]
        if missing:
            raise ValueError(
                "the model needs inputs named 'token_ids' and 'valid' to be decoded; received "
                f"inputs {self.graph.inputs}, without {missing}."
            )
        self._sort_calls()
        refuse_encoders(self.time_calls)
        if needs_check(self.time_calls):
            check_steps(self)

    def _sort_calls(self):
        """Splits the calls into context side and time side."""
        self._time_keys = {(name, 0) for name in TIME_INPUTS}
        self.context_calls, self.time_calls = [], []
        for call in self.graph.calls:
            if any(ref.key in self._time_keys for ref in call.refs):
                self.time_calls.append(call)
                self._time_keys.add(call.key)
            else:
                self.context_calls.append(call)

    @property
    def context_inputs(self):
        """The names of the context inputs."""
        return [name for name in self.graph.inputs if name not in TIME_INPUTS]

    @property
    def variables(self):
        """All variables that the model's layers read."""
        layers = [call.layer for call in self.graph.calls]
        layers = [layer for layer in layers if isinstance(layer, keras.layers.Layer)]
        return list({id(v): v for layer in layers for v in layer.variables}.values())

    @functools.cached_property
    def stateful(self):
        """The calls that keep state, by the name of their state."""
        return {c.state_name: c for c in self.time_calls if hasattr(c.layer, "step")}

    @functools.cached_property
    def slot_axes(self):
        """Which axes of the states are their slots, by name; see `states.find_slot_axes`."""
        specs = {name: self.graph.specs[name] for name in self.context_inputs}
        context = {n: ops.convert_to_tensor(ones(spec, 1, 2)) for n, spec in specs.items()}
        short, long = (self.start(1, length, context)["layers"] for length in LENGTHS)
        return {name: find_slot_axes(short[name], long[name]) for name in self.stateful}

    @property
    def vocabulary_size(self):
        """V of the layer that embeds `token_ids`; None if that is not a `TokenEmbedding`."""
        return self.vocabulary_of("token_ids")

    def vocabulary_of(self, name):
        """Returns V of the layer that embeds an input; None if that is not a `TokenEmbedding`."""
        for call in self.graph.calls:
            if isinstance(call.layer, TokenEmbedding) and Ref(name, 0, 0) in call.refs:
                return call.layer.vocabulary_size
        return None

    @property
    def context_length(self):
        """The longest sequence the model takes; None if nothing in it sets a limit."""
        return shortest_context(call.layer for call in self.time_calls)

    @property
    def source_length(self):
        """The longest context that the model takes; None if nothing in it sets a limit."""
        return shortest_context(call.layer for call in self.context_calls)

    def check_context(self, context):
        """Raises ValueError if a dict does not name exactly the context inputs."""
        if sorted(context) != sorted(self.context_inputs):
            raise ValueError(
                f"context must hold {sorted(self.context_inputs)}; received {sorted(context)}."
            )

    def start(self, batch, length, context=None):
        """Returns the state before the first token.

        Args:
            batch: B; an int, or a scalar tensor inside an exported program.
            length: Slots that the caches hold: all tokens and pads ever stepped.
            context: Dict of tensors for the context inputs.

        Raises:
            ValueError: If `context` does not name exactly the context inputs, or a known `batch` or
                `length` is not positive.
        """
        sizes = {"batch": batch, "length": length}
        check_positive(**{k: v for k, v in sizes.items() if isinstance(v, int | float)})
        context = context or {}
        self.check_context(context)
        values = {Ref(name, 0, 0): value for name, value in context.items()}
        for call in self.context_calls:
            call.run(values)
        states, kept = {}, {}
        for call in self.time_calls:
            if hasattr(call.layer, "step"):
                memory = {k: fill(v, values) for k, v in call.keywords.items() if self._given(v)}
                states[call.state_name] = call.layer.start(batch, length, **memory)
            else:
                kept |= {ref.name: values[ref] for ref in call.refs if self._given(ref)}
        cursor = ops.zeros((), "int32")
        return {"context": kept, "layers": states, "cursor": cursor, "length": cursor + length}

    def step(self, token_ids, valid, state):
        """Runs the model on the next chunk of tokens.

        Args:
            token_ids: int32 `[B, T]`.
            valid: bool `[B, T]`, True = real token.
            state: From `start` or the step before.

        Returns:
            The model's output for the chunk, `[B, T, V]`, and the new state.

        Raises:
            ValueError: If the two shapes differ or, where the cursor is known (outside a compiled
                program), the chunk does not fit in the slots that are left.
        """
        _check_chunk(token_ids, valid, state)
        values = time_values(token_ids, valid)
        state = self.run(values, state)
        return values[self.graph.output], state

    def hidden(self, token_ids, valid, state):
        """Runs all but the head: the same as `step`, up to what makes the output.

        Returns:
            What the head reads, float `[B, T, D]`, and the new state.

        Raises:
            ValueError: As `step`; or if the model has no head: see `check_head`.
        """
        source = self.check_head().refs[0]
        _check_chunk(token_ids, valid, state)
        values = time_values(token_ids, valid)
        state = self.run(values, state, head=False)
        return values[source], state

    def head(self, hidden):
        """Returns the model's output `[B, T, V]` for what `hidden` returned."""
        call = self.check_head()
        values = {call.refs[0]: hidden}
        call.run(values)
        return values[self.graph.output]

    def check_head(self):
        """Returns the call that makes the output.

        Raises:
            ValueError: If it is not made from one tensor, by a layer without state.
        """
        call = self._head_call
        if hasattr(call.layer, "step") or len(call.refs) != 1:
            raise ValueError(
                "the model must have a head that reads one hidden state; its output is made by "
                f"{call.layer.name!r} ({type(call.layer).__name__}) from {len(call.refs)} tensors."
            )
        return call

    def run(self, values, state, head=True):
        """Runs all calls of the time side, filing each output in `values`; returns the new state.

        Args:
            values: Dict from `Ref` to tensor, with those of `time_values`; it is filled.
            state: From `start` or the step before.
            head: Whether the call that makes the output is run.
        """
        values |= {Ref.named(name): value for name, value in state["context"].items()}
        states = {}
        for call in self.time_calls:
            if not head and call is self._head_call:
                continue
            if not hasattr(call.layer, "step"):
                call.run(values)
                continue
            # What is given went into `start`.
            keywords = {k: v for k, v in call.keywords.items() if not self._given(v)}
            name = call.state_name
            output, states[name] = call.layer.step(
                *fill(call.arguments, values),
                **fill(keywords, values),
                state=state["layers"][name],
                cursor=state["cursor"],
            )
            call.record(output, values)
        time = ops.shape(values[Ref("token_ids", 0, 0)])[1]
        return {**state, "layers": states, "cursor": state["cursor"] + time}

    @property
    def _head_call(self):
        return next(c for c in self.time_calls if c.key == self.graph.output.key)

    def _given(self, argument):
        """Returns whether an argument is a tensor of the context side."""
        refs = find_refs(argument)
        return bool(refs) and all(ref.key not in self._time_keys for ref in refs)


def _check_chunk(token_ids, valid, state):
    if tuple(token_ids.shape) != tuple(valid.shape):
        raise ValueError(
            "token_ids and valid must have one shape; received "
            f"token_ids.shape={tuple(token_ids.shape)}, valid.shape={tuple(valid.shape)}."
        )
    cursor, length = concrete(state["cursor"]), concrete(state["length"])
    if cursor is not None and length is not None and cursor + token_ids.shape[1] > length:
        raise ValueError(
            f"the state has {length} slots, of which {cursor} are written; received "
            f"{token_ids.shape[1]} more tokens. Start with a larger length."
        )
