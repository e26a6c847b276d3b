"""What can be done with a stepper's state: choose its rows, forget tokens that were stepped."""

from keras import ops, tree

from keras_arch.backend import read_slots, write_slots

# Two lengths that differ even where a layer rounds its slots up to a bucket.
LENGTHS = (256, 512)
# Where a layer's state holds what it made of the context alone. One row of it serves all entries
# of that row in the rest of the state: no step changes it, and it is neither moved nor emptied.
MEMORY = "memory"


def take_rows(state, rows, batch):
    """Returns the state of a batch made of these rows of the old one, some maybe repeated.

    The memory of layers stays as it is. So rows may not leave their places: of B rows of memory,
    each serves as many rows of the batch as the next, one after another.

    Args:
        state: From a `Stepper`.
        rows: int `[any]`.
        batch: B of the old one.
    """

    def take(x):
        # A row may have several entries on axis 0, one after another.
        entries = ops.reshape(x, (batch, -1, *ops.shape(x)[1:]))
        return ops.reshape(ops.take(entries, rows, axis=0), (-1, *ops.shape(x)[1:]))

    layers = {name: map_own(take, layer) for name, layer in state["layers"].items()}
    return {**state, "context": tree.map_structure(take, state["context"]), "layers": layers}


def map_own(function, state, *others):
    """Maps a function over the tensors of a layer's state but those of its memory.

    Args:
        function: Of a tensor, and what stands at its place in each of the others.
        state: Nested dict of tensors.
        *others: Nested dicts of the same names, maybe without memory.
    """
    if not isinstance(state, dict):
        return function(state, *others)
    return {
        name: part
        if name == MEMORY
        else map_own(function, part, *(other[name] for other in others))
        for name, part in state.items()
    }


def check_rewind(stepper):
    """Raises ValueError, naming the layer, if `rewind` could not forget what a layer read."""
    for name, call in stepper.stateful.items():
        if not hasattr(call.layer, "rewind") and -1 in tree.flatten(stepper.slot_axes[name]):
            raise ValueError(
                f"layer {call.layer.name!r} ({type(call.layer).__name__}) cannot forget tokens: it "
                "keeps state that is not one of slots, and has no method rewind (see "
                "keras_arch.layers.Part)."
            )


def rewind(stepper, state, valid, kept):
    """Forgets the last tokens of each row, as if they had been pads.

    The cursor goes back over the slots at the end in which no row keeps a token; the others become
    pads.

    Args:
        stepper: A `Stepper` that `check_rewind` lets pass.
        state: From its `step`.
        valid: bool `[B, T]`, as that step had it.
        kept: bool `[B, T]`, the tokens that stay: in each row the first of the valid ones.

    Returns:
        The new state.
    """
    time = ops.shape(valid)[1]
    begin = state["cursor"] - time
    dropped = ops.logical_and(valid, ops.logical_not(kept))
    states = dict(state["layers"])
    for name, call in stepper.stateful.items():
        if hasattr(call.layer, "rewind"):
            states[name] = call.layer.rewind(states[name], dropped)
        elif valid.shape[0] != 1:
            # Of a row alone, the dropped slots all come after the cursor, where no token looks.
            states[name] = _empty_slots(states[name], stepper.slot_axes[name], dropped, begin)
    ends = ops.where(ops.any(kept, axis=0), ops.arange(1, time + 1, dtype="int32"), 0)
    return {**state, "layers": states, "cursor": begin + ops.max(ends)}


def find_slot_axes(short, long):
    """Returns which axis of each tensor of a layer's state is its slots, -1 where none is.

    Args:
        short: What the layer's `start` returns for the first of `LENGTHS`; its memory is left out.
        long: The same for the second.
    """
    if isinstance(short, dict):
        return {
            name: find_slot_axes(part, long[name]) for name, part in short.items() if name != MEMORY
        }
    sizes = enumerate(zip(short.shape, long.shape, strict=True))
    return next((axis for axis, (a, b) in sizes if a != b), -1)


def _empty_slots(state, axes, dropped, begin):
    """Returns a layer's state with the slots of dropped tokens set to zero.

    Args:
        state: Nested dict of tensors; its memory stays.
        axes: As `find_slot_axes` returns; none is -1.
        dropped: bool `[B, T]`.
        begin: int32 scalar, the slot of the first column of `dropped`.
    """
    rows, time = ops.shape(dropped)

    def empty(x, axis):
        entries, mask = ops.shape(x)[0], [1] * len(x.shape)
        mask[0], mask[axis] = entries, time
        # A row may have several entries on axis 0, one after another.
        emptied = ops.reshape(ops.repeat(dropped, entries // rows, axis=0), mask)
        part = read_slots(x, begin, time, axis)
        part = ops.where(emptied, ops.zeros_like(part), part)
        return write_slots(x, part, begin, axis)

    return map_own(empty, state, axes)
