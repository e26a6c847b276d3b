"""How much of the source the beams have attended to."""

from keras import ops

from keras_arch.layers import AttentionDecoder

#: What an entry that was never attended to counts for: its logarithm is finite.
LEAST = 1e-6


def coverage_name(stepper):
    """Returns the name of the state that holds the coverage.

    Raises:
        ValueError: If there is none, or more than one.
    """
    calls = stepper.stateful.items()
    names = [name for name, call in calls if isinstance(call.layer, AttentionDecoder)]
    if len(names) != 1:
        raise ValueError(
            "coverage_penalty needs a model with one AttentionDecoder; received one with "
            f"{len(names)}."
        )
    return names[0]


def log_coverage(state, width):
    """Returns `sum over the source of log(min(c, 1))`, float32 `[B, W]`.

    Args:
        state: That of an `AttentionDecoder`: `coverage` is c, float32 `[B * W, S]`, the beams of a
            row together, which share its `memory`.
        width: W.
    """
    valid = state["memory"]["valid"]
    coverage = ops.reshape(state["coverage"], (-1, width, ops.shape(valid)[1]))
    logarithms = ops.log(ops.clip(coverage, LEAST, 1.0))
    return ops.sum(ops.where(valid[:, None], logarithms, 0.0), axis=-1)
