"""Proves by numbers that stepping through a graph equals running it whole."""

import keras
import numpy as np
from keras import ops

from keras_arch.backend import compile_function
from keras_arch.generation.graph import Ref, ones, time_values
from keras_arch.layers.dropout import Dropout
from keras_arch.layers.part import Part

# Layers that treat every time step alike; the norms, over the last axis only.
POINTWISE = (
    Dropout,
    keras.layers.Activation,
    keras.layers.Add,
    keras.layers.Dense,
    keras.layers.Dropout,
    keras.layers.Embedding,
    keras.layers.LayerNormalization,
    keras.layers.Multiply,
    keras.layers.RMSNormalization,
)
# Tokens that are run, if the model takes so many: mixing over a longer distance goes unseen.
LONGEST = 128


def refuse_encoders(calls):
    """Raises ValueError if a layer of this package cannot do step by step what its parts can."""
    for layer in (call.layer for call in calls):
        if not _is_ours(layer) or hasattr(layer, "step"):
            continue
        if any(hasattr(part, "step") for part in layer.parts()):
            raise ValueError(
                "an encoder cannot be decoded step by step, for its tokens see those after them; "
                f"received a model whose layer {layer.name!r} ({type(layer).__name__}) reads "
                "token_ids. To serve one, see keras_arch.serving.export_encoder."
            )


def needs_check(calls):
    """Returns whether any call's layer is neither one of this package nor known as pointwise."""
    return not all(_is_known(call.layer) for call in calls)


def _is_known(layer):
    if _is_ours(layer):
        activation = getattr(layer, "activation", None)
        return _is_known_activation(activation) and all(map(_is_known, layer.parts()))
    return (
        type(layer) in POINTWISE
        and getattr(layer, "axis", -1) in (-1, [-1])
        and _is_known_activation(getattr(layer, "activation", None))
    )


def _is_ours(layer):
    return isinstance(layer, Part) and type(layer).__module__.startswith("keras_arch.")


def _is_known_activation(activation):
    return activation is None or activation.__module__.startswith(("keras.", "keras_arch."))


def check_steps(stepper):
    """Compares every layer's output, run whole and run in three chunks, the second of one token.

    Args:
        stepper: A `Stepper`.

    Raises:
        ValueError: Names the first layer whose outputs differ, that loses the time axis, or that
            cannot run on a part of a sequence.
    """
    faults = []

    def run(token_ids, valid, *context):
        context = dict(zip(stepper.context_inputs, context, strict=True))
        whole = _run_whole(stepper, token_ids, valid, context)
        chunks, fault = _run_in_chunks(stepper, token_ids, valid, context, sizes)
        faults.append(fault)
        return [
            (whole[call.output], [values.get(call.output) for values in chunks])
            for call in stepper.time_calls
        ]

    time = min(stepper.context_length or LONGEST, LONGEST)
    sizes = [size for size in (time // 2, 1, time - time // 2 - 1) if size > 0]
    # Neither constant nor periodic, and of two tokens only: any vocabulary has those.
    token_ids = np.random.default_rng(0).integers(0, 2, (2, time)).astype("int32")
    valid = np.arange(time)[None] >= np.array([[0], [time // 4]])
    source = min(time, stepper.source_length or time)
    context = [ones(stepper.graph.specs[name], 2, source) for name in stepper.context_inputs]
    outputs = compile_function(run, stepper.variables)(token_ids, valid, *context)
    for call, (whole, parts) in zip(stepper.time_calls, outputs, strict=True):
        if any(part is None for part in parts):
            raise _refusal(call, f"it cannot run on a part of a sequence ({faults[0]})")
        _compare(call, whole, parts, valid, sizes)


def _run_whole(stepper, token_ids, valid, context):
    values = time_values(token_ids, valid)
    values |= {Ref(name, 0, 0): value for name, value in context.items()}
    for call in stepper.graph.calls:
        call.run(values)
    return values


def _run_in_chunks(stepper, token_ids, valid, context, sizes):
    """Returns each chunk's values, and the error that ended the run, if one did."""
    state = stepper.start(2, sum(sizes), context)
    chunks, begin = [], 0
    for size in sizes:
        part = slice(begin, begin + size)
        chunks.append(time_values(token_ids[:, part], valid[:, part]))
        try:
            state = stepper.run(chunks[-1], state)
        except Exception as error:  # whatever a foreign layer raises is its refusal
            return chunks, error
        begin += size
    return chunks, None


def _compare(call, whole, parts, valid, sizes):
    precise = keras.backend.standardize_dtype(whole.dtype) not in ("float16", "bfloat16")
    whole = ops.convert_to_numpy(ops.cast(whole, "float32"))
    parts = [ops.convert_to_numpy(ops.cast(part, "float32")) for part in parts]
    if not _has_time(whole, parts, sizes, axis=1):
        # Biases of attention have it on axis 2; their use in attention is compared.
        if not _has_time(whole, parts, sizes, axis=2):
            raise _refusal(call, "its output has no time axis")
        return
    parts = np.concatenate(parts, axis=1)
    # A run that failed later on has fewer parts.
    valid, whole = valid[:, : parts.shape[1]], whole[:, : parts.shape[1]]
    difference = np.abs(whole - parts)[valid].max()
    # Half-precision arithmetic in another order differs by up to a few hundredths.
    tolerance = 1e-4 if precise else 5e-2
    if not difference <= tolerance * max(1.0, np.abs(whole[valid]).max()):
        raise _refusal(call, f"its output differs by {difference:.2g}")


def _has_time(whole, parts, sizes, axis):
    # A run that failed later on has fewer parts than sizes.
    sized = zip([whole, *parts], [sum(sizes), *sizes], strict=False)
    return all(x.ndim > axis and x.shape[axis] == size for x, size in sized)


def _refusal(call, reason):
    return ValueError(
        f"layer {call.layer.name!r} ({type(call.layer).__name__}) cannot be decoded step by step: "
        f"run in chunks and run whole, {reason}. A layer that mixes time steps needs the methods "
        "start and step (see keras_arch.layers.Part)."
    )
