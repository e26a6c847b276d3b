"""Products of many vectors with one matrix."""

from keras import ops


def multiply_rows(x, matrix):
    """Returns `x @ matrix`, float `[..., E]`, as a product of two matrices.

    With the batch and the time apart, XLA on CPU first copies what comes back to the product into
    another order, to sum over both: the matrix's gradient takes twice the time.

    Args:
        x: float `[..., D]`.
        matrix: float `[D, E]`.
    """
    shape = ops.shape(x)
    y = ops.matmul(ops.reshape(x, (-1, shape[-1])), matrix)
    return ops.reshape(y, (*shape[:-1], matrix.shape[-1]))
