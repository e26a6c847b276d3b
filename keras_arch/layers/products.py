"""Products of many vectors with one matrix.

With the batch and the time apart, XLA on CPU first copies what comes back to such a product into
another order, to sum over both: the matrix's gradient takes twice the time. So they are made one
axis.
"""

from keras import ops


def multiply_rows(x, matrix):
    """Returns `x @ matrix`, float `[..., E]`, as a product of two matrices.

    Args:
        x: float `[..., D]`.
        matrix: float `[D, E]`.
    """
    return as_rows(lambda rows: ops.matmul(rows, matrix), x)


def as_rows(function, x):
    """Returns what a function of vectors gives, `[..., E]`, for all of them as rows of one matrix.

    Args:
        function: From `[any, D]` to `[any, E]`; each row by itself.
        x: float `[..., D]`.
    """
    shape = ops.shape(x)
    y = function(ops.reshape(x, (-1, shape[-1])))
    return ops.reshape(y, (*shape[:-1], y.shape[-1]))
