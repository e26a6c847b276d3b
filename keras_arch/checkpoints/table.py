"""Rows of a family's table: which tensors of a checkpoint make which of our weights.

A row reads both ways: `join` makes the weight of the tensors, `split` the tensors of the weight.
"""

from typing import NamedTuple

import numpy as np


class Row(NamedTuple):
    """One weight of ours, made of tensors that lie side by side along its last axis.

    Attributes:
        weight: Path of our weight.
        tensors: Names of their tensors, in order.
        transposed: Whether theirs are matrices `[out, in]`, as PyTorch's linear layers have them.
        shares: What part of the last axis is whose, in proportion; default the same for all.
        row: Whether theirs, one tensor, is a matrix `[1, width]` where ours is a vector.
    """

    weight: str
    tensors: tuple[str, ...]
    transposed: bool = False
    shares: tuple[int, ...] | None = None
    row: bool = False

    def widths(self, shape):
        """Returns how much of a weight's last axis each tensor has."""
        shares = self.shares or (1,) * len(self.tensors)
        return [shape[-1] * share // sum(shares) for share in shares]

    def shapes(self, shape):
        """Returns the shapes that their tensors need for our weight's shape."""
        shape = (1, *shape) if self.row else shape
        shapes = [(*shape[:-1], width) for width in self.widths(shape)]
        return [wanted[::-1] for wanted in shapes] if self.transposed else shapes

    def join(self, read, shape):
        """Returns our weight, float32.

        Args:
            read: Function from a tensor's name to the array; one tensor at a time is held.
            shape: Of our weight.
        """
        if len(self.tensors) == 1:
            array = read(self.tensors[0])
            array = array[0] if self.row else array
            return array.T if self.transposed else array
        joined, begin = np.empty(shape, "float32"), 0
        for name, width in zip(self.tensors, self.widths(shape), strict=True):
            array = read(name)
            joined[..., begin : begin + width] = array.T if self.transposed else array
            begin += width
        return joined

    def split(self, array):
        """Returns their tensors of our weight, by name."""
        parts = np.split(array, np.cumsum(self.widths(array.shape))[:-1], axis=-1)
        parts = [part.T if self.transposed else part for part in parts]
        parts = [part[None] if self.row else part for part in parts]
        return dict(zip(self.tensors, parts, strict=True))


class Extra(NamedTuple):
    """A tensor of theirs that no weight of ours is made of.

    Attributes:
        pattern: Regular expression of the whole name.
        reason: Why nothing is lost without it.
        equals: What it must hold for that: the name of the tensor it repeats, which it also stands
            for where a file has left that one out; or a number. None: anything.
    """

    pattern: str
    reason: str
    equals: str | float | None = None


def dense(weight, *tensors, bias=True, transposed=True, shares=None):
    """Returns the rows of a dense layer: kernel, and bias where it has one."""
    rows = [Row(f"{weight}/kernel", tuple(f"{x}.weight" for x in tensors), transposed, shares)]
    if bias:
        rows.append(Row(f"{weight}/bias", tuple(f"{x}.bias" for x in tensors), shares=shares))
    return rows


def norm(weight, tensor, offset=True):
    """Returns the rows of a norm: scale, and offset where it has one."""
    rows = [Row(f"{weight}/scale", (f"{tensor}.weight",))]
    if offset:
        rows.append(Row(f"{weight}/offset", (f"{tensor}.bias",)))
    return rows


def table(weight, tensor):
    """Returns the row of an embedding."""
    return [Row(f"{weight}/table", (f"{tensor}.weight",))]


def without_prefix(rows, prefix):
    """Returns rows whose tensors have the names of the bare model."""
    return [
        row._replace(tensors=tuple(name.removeprefix(prefix) for name in row.tensors))
        for row in rows
    ]


def repeated(count, weight, tensor, rows):
    """Returns the rows of equal blocks.

    Args:
        count: Number of blocks.
        weight: Our name of a block, with `{}` for its number.
        tensor: Theirs.
        rows: Rows of one block, with the names inside it.
    """
    return [
        row._replace(
            weight=f"{weight.format(i)}/{row.weight}",
            tensors=tuple(f"{tensor.format(i)}.{name}" for name in row.tensors),
        )
        for i in range(count)
        for row in rows
    ]
