"""Next-token targets: every position predicts the token that follows it."""


def next_token(token_ids, valid, segment_ids=None):
    """Splits rows of tokens into model inputs, targets and loss weights by a shift of one.

    Pure slicing, so it takes arrays of numpy, TensorFlow, JAX or PyTorch and works inside a
    `tf.data` map.

    Args:
        token_ids: int `[B, T + 1]`.
        valid: bool `[B, T + 1]`, True = real token.
        segment_ids: Optional int `[B, T + 1]`, the document of each token in a packed row. A
            position whose next token belongs to another document gets weight False.

    Returns:
        `(inputs, targets, weights)`: a dict with `token_ids` and `valid` (and `segment_ids`)
        `[B, T]`, the int targets `[B, T]`, and the bool weights `[B, T]`, True where both the
        position and its target are real.

    Raises:
        ValueError: If the arguments are no arrays of one shape and two axes.
    """
    given = {"token_ids": token_ids, "valid": valid, "segment_ids": segment_ids}
    _check_shapes({name: x for name, x in given.items() if name != "segment_ids" or x is not None})
    inputs = {"token_ids": token_ids[:, :-1], "valid": valid[:, :-1]}
    weights = valid[:, :-1] & valid[:, 1:]
    if segment_ids is not None:
        inputs["segment_ids"] = segment_ids[:, :-1]
        weights = weights & (segment_ids[:, :-1] == segment_ids[:, 1:])
    return inputs, token_ids[:, 1:], weights


def _check_shapes(arrays):
    shapes = {name: getattr(x, "shape", None) for name, x in arrays.items()}
    sizes = [
        [*shape] if shape is not None and len(shape) == 2 else None for shape in shapes.values()
    ]
    # The sizes of a graph's tensors may be unknown.
    if None in sizes or any(len({*axis} - {None}) > 1 for axis in zip(*sizes, strict=True)):
        found = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(
            f"{', '.join(shapes)} must be arrays of one shape [B, T + 1]; received the shapes "
            f"{found}."
        )
