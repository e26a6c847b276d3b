"""Loops over time through matrices, with a gradient that multiplies once for all steps.

Derived step by step, the gradient of a loop adds a product as large as the matrix to a sum as large
as the matrix, at each step: for 16 rows of 512 that takes as long as all its other products. Here
the loop of the gradient keeps what each product read and what came back to it; one product of the
two, after the loop, is the matrix's gradient. Products are not made again, only what stands between
them is. On PyTorch, which runs each operation by itself, that costs what it saves: there it is the
plain loop.
"""

import functools

import keras
from keras import ops, tree

from keras_arch.backend.gradients import pull_back, with_gradient
from keras_arch.backend.loops import scan


def recur(body, state, inputs, matrices, shared, reverse=False):
    """Runs `scan` for a body that multiplies by matrices.

    Args:
        body: Function `(state, input, multiply, shared) -> (state, output)`, where `multiply` is
            nested like `matrices` and has for each a function of x to `x @ matrix`, called once. It
            reads no other tensors than it is given; states and outputs are float.
        state: As in `scan`; so are `inputs` and `reverse`.
        matrices: Nested float `[D, any]`, for x `[..., D]`; or `[B, D, any]`, one for each row, for
            x `[B, any, D]`.
        shared: Nested tensors that every step reads.

    Returns:
        As `scan`.
    """
    if tree.flatten(inputs)[0].shape[0] == 1 or keras.backend.backend() == "torch":
        multiply = tree.map_structure(lambda matrix: lambda x: ops.matmul(x, matrix), matrices)
        return scan(lambda *step: body(*step, multiply, shared), state, inputs, reverse)
    arguments = tree.map_structure(ops.convert_to_tensor, (state, inputs, matrices, shared))
    rule = _Recurrence(body, arguments, reverse)
    outputs = with_gradient(rule.forward, rule.backward, tree.flatten(arguments))
    return tree.pack_sequence_as(rule.outputs, list(outputs))


class _Recurrence:
    """The loop and its gradient, as functions of flat lists.

    Args:
        body: As `recur` takes it.
        arguments: Its state, inputs, matrices and shared tensors.
        reverse: As `recur` takes it.
    """

    def __init__(self, body, arguments, reverse):
        self.body = body
        self.arguments = tree.map_structure(_is_float, arguments)
        self.reverse = reverse

    def forward(self, *flat):
        """Returns the last state and the outputs, flat; and what `backward` reads."""
        state, inputs, matrices, shared = tree.pack_sequence_as(self.arguments, list(flat))

        def step(state, step):
            read, made = ([None] * len(tree.flatten(matrices)) for _ in range(2))

            def multiply(place, x, matrix):
                read[place], made[place] = x, ops.matmul(x, matrix)
                return made[place]

            calls = [
                functools.partial(multiply, place, matrix=matrix)
                for place, matrix in enumerate(tree.flatten(matrices))
            ]
            calls = tree.pack_sequence_as(matrices, calls)
            new, output = self.body(state, step, calls, shared)
            return new, (output, state, read, made)

        last, (output, states, read, made) = scan(step, state, inputs, self.reverse)
        self.outputs = tree.map_structure(lambda _: 0, (last, output))
        kept = (states, inputs, matrices, shared, read, made)
        return tree.flatten((last, output)), kept

    def backward(self, kept, upstream):
        """Returns the gradients by what `forward` takes, flat."""
        states, inputs, matrices, shared, read, made = kept
        d_last, d_output = tree.pack_sequence_as(self.outputs, list(upstream))
        back = [ops.swapaxes(matrix, -1, -2) for matrix in tree.flatten(matrices)]

        def step(carry, step):
            d_state, d_shared = carry
            d_state, d_input, d_made, d_more = self._pull(step, shared, d_state, matrices, back)
            return (d_state, [a + b for a, b in zip(d_shared, d_more, strict=True)]), (
                d_input,
                d_made,
            )

        begin = [ops.zeros_like(x) for x in tree.flatten(shared) if _is_float(x)]
        steps = {"state": states, "input": inputs, "made": made, "d_output": d_output}
        carry, (d_inputs, d_made) = scan(step, (d_last, begin), steps, not self.reverse)
        d_state, d_shared = carry
        d_matrices = map(_product, read, d_made, tree.flatten(matrices))
        found = iter([*tree.flatten(d_state), *d_inputs, *d_matrices, *d_shared])
        return [next(found) if float else None for float in tree.flatten(self.arguments)]

    def _pull(self, step, shared, d_state, matrices, back):
        """Returns the gradients of one step by state, input, products and shared tensors."""
        given = (step["state"], step["input"], step["made"], shared)
        flat = tree.flatten(given)
        places = [i for i, x in enumerate(flat) if _is_float(x)]

        def run(*floats):
            values = list(flat)
            for place, value in zip(places, floats, strict=True):
                values[place] = value
            state, inputs, made, shared = tree.pack_sequence_as(given, values)
            calls = [
                functools.partial(_made_before, product=product, back=matrix)
                for product, matrix in zip(made, back, strict=True)
            ]
            calls = tree.pack_sequence_as(matrices, calls)
            return tree.flatten(self.body(state, inputs, calls, shared))

        upstream = [*tree.flatten(d_state), *tree.flatten(step["d_output"])]
        found = iter(pull_back(run, [flat[place] for place in places], upstream))
        groups = [[next(found) for x in tree.flatten(part) if _is_float(x)] for part in given]
        return (
            tree.pack_sequence_as(step["state"], groups[0]),
            groups[1],
            tree.pack_sequence_as(step["made"], groups[2]),
            groups[3],
        )


def _made_before(x, product, back):
    """Returns a product that is known; a gradient goes to it, and through `back` to x."""

    @ops.custom_gradient
    def replay(x, product):
        def gradient(*arguments, upstream=None):
            # TensorFlow hands the upstream gradient over by position, JAX by name.
            upstream = arguments[0] if upstream is None else upstream
            return ops.matmul(upstream, back), upstream

        return product, gradient

    return replay(x, product)


def _product(read, made, matrix):
    """Returns the gradient of a matrix: the sum of what it read times what came back to it.

    Args:
        read: float `[T, ..., D]`.
        made: float `[T, ..., any]`.
        matrix: float `[D, any]`; or `[B, D, any]`, with B the second axis of the others.
    """
    if len(matrix.shape) == 2:
        read, made = (ops.reshape(x, (-1, x.shape[-1])) for x in (read, made))
    else:
        rows = ops.shape(matrix)[0]
        read, made = (
            ops.reshape(ops.swapaxes(x, 0, 1), (rows, -1, ops.shape(x)[-1])) for x in (read, made)
        )
    return ops.matmul(ops.swapaxes(read, -1, -2), made)


def _is_float(x):
    return keras.backend.is_float_dtype(keras.backend.standardize_dtype(x.dtype))
