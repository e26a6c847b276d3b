"""The decode loop: one program from prompt to tokens, on every backend and inside exports."""

from keras import ops

from keras_arch.generation.random import row_uniforms


def decode(stepper, token_ids, valid, buffer, limit, sampler, seed, stop_ids):
    """Generates after prompts that are padded on the left.

    All tokens of the prompt but the last are read in one pass; then one token at a time is read,
    and one chosen. The loop ends when all rows have stopped.

    Args:
        stepper: A `Stepper`.
        token_ids: int32 `[B, P]`, P at least 2.
        valid: bool `[B, P]`; the last column is all True.
        buffer: Python int N, columns of the results.
        limit: int32 scalar, at most N: the number of tokens to generate.
        sampler: `Greedy()` or a `Sample`.
        seed: int32 `[2]`.
        stop_ids: int32 `[any]`; a row ends with the first of them, itself included.

    Returns:
        `(token_ids, valid, log_probabilities)`, `[B, N]` each: int32, bool, float32. After a row's
        end they hold 0, False and 0. Log-probabilities are the model's own, before the sampler.
    """
    rows, length = ops.shape(token_ids)[0], ops.shape(token_ids)[1]
    state = stepper.start(rows, length + buffer)
    _, state = stepper.step(token_ids[:, :-1], valid[:, :-1], state)
    row = ops.zeros_like(token_ids[:, 0])
    results = (
        ops.zeros((rows, buffer), "int32"),
        ops.zeros((rows, buffer), "bool"),
        ops.zeros((rows, buffer), "float32"),
    )

    def running(i, token, live, results, state):
        return ops.logical_and(i < limit, ops.any(live))

    def body(i, token, live, results, state):
        logits, state = stepper.step(token[:, None], live[:, None], state)
        logits = ops.cast(logits[:, -1], "float32")
        token = sampler.choose(logits, row_uniforms(seed, rows, i))
        log_probability = ops.take_along_axis(
            ops.log_softmax(logits, axis=-1), token[:, None], axis=-1
        )
        chosen = (
            ops.where(live, token, 0)[:, None],
            live[:, None],
            ops.where(live[:, None], log_probability, 0.0),
        )
        results = tuple(
            ops.slice_update(result, (0, i), column)
            for result, column in zip(results, chosen, strict=True)
        )
        stopped = ops.any(token[:, None] == stop_ids[None, :], axis=-1)
        live = ops.logical_and(live, ops.logical_not(stopped))
        return i + 1, token, live, results, state

    start = (ops.zeros((), "int32"), token_ids[:, -1], row == 0, results, state)
    return ops.while_loop(running, body, start)[3]
