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
    segments = {} if segment_ids is None else {"segment_ids": segment_ids}
    _check_shapes(token_ids=token_ids, valid=valid, **segments)
    inputs = {"token_ids": token_ids[:, :-1], "valid": valid[:, :-1]}
    weights = valid[:, :-1] & valid[:, 1:]
    if segment_ids is not None:
        inputs["segment_ids"] = segment_ids[:, :-1]
        weights = weights & (segment_ids[:, :-1] == segment_ids[:, 1:])
    return inputs, token_ids[:, 1:], weights


def _check_shapes(**arrays):
    """Raises ValueError for arrays of other shapes, as far as a graph knows them."""
    shapes = {name: getattr(x, "shape", ()) for name, x in arrays.items()}
    known = [[*shape] for shape in shapes.values() if getattr(shape, "rank", 2) is not None]
    axes = zip(*known, strict=False)
    if any(len(x) != 2 for x in known) or any(len({*axis} - {None}) > 1 for axis in axes):
        found = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(
            f"{', '.join(shapes)} must be arrays of one shape [B, T + 1]; received the shapes "
            f"{found}."
        )
