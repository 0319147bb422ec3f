# SPDX-License-Identifier: MIT
"""Whether a product computed what it should: every element, or those of some rows if many.

Rows are the rows of A and of the result: a tile's first and last ones, those at the edges and some
in between, with all of B, so that every column and all of K are met.
"""

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cklang.errors import CkError
from cklang.fusion.plan import AnyKernel, Computed, Read, View
from cklang.ir.nodes import Function, Value
from cklang.reference.bounds import evaluate_with_bound
from cklang.reference.distance import largest_ratio

Array = npt.NDArray[Any]

_WHOLE = 1 << 27
"""Elements of A times columns of B up to which everything is compared."""
_ROWS = 64
_UNLIKE = "I032"
"""The reference's error where one extent has two values: rows cannot be taken from this kernel."""


class Product(AnyKernel, Protocol):
    """A kernel of a product or convolution: rows of A are rows of its results."""

    @property
    def a(self) -> View | Computed:
        """The operand that has the rows."""

    @property
    def b(self) -> View | Computed:
        """The other one."""

    @property
    def reads(self) -> tuple[Read, ...]:
        """What the epilogue reads."""

    @property
    def axes(self) -> Sequence[int | None]:
        """The result's axes in the order of the kernel's."""

    @property
    def more(self) -> tuple[Read, ...]:
        """Further results."""

    @property
    def depth(self) -> int:
        """How many axes are summed over."""

    @property
    def shares_numbers(self) -> bool:
        """Whether rows share numbers, such as scales of blocks."""


def error_ratio(
    function: Function, kernel: Product, inputs: Sequence[Array], results: Sequence[Array]
) -> float:
    """Return the largest error of a kernel in units of its bound: at most 1 if it is right."""
    some = sampled(kernel, inputs, results)
    if some is not None:
        try:
            return _largest(some[1], *evaluate_with_bound(function, some[0]))
        except CkError as problem:
            if problem.code != _UNLIKE:
                raise
    return _largest(results, *evaluate_with_bound(function, list(inputs)))


def _largest(results: Sequence[Array], wanted: Sequence[Array], bounds: Sequence[Array]) -> float:
    return max(map(largest_ratio, results, wanted, bounds))


def sampled(
    kernel: Product, inputs: Sequence[Array], results: Sequence[Array]
) -> tuple[list[Array], list[Array]] | None:
    """Return some rows of the inputs and of the results; None if they are few, or tangled."""
    *_, axis, column = kernel.axes
    if axis is None:
        return None
    rows = results[0].shape[axis]
    work = math.prod(inputs[0].shape) * (1 if column is None else results[0].shape[column])
    if work <= _WHOLE or rows <= _ROWS:
        return None
    along = _row_axes(kernel)
    if along is None:
        return None
    chosen = _rows(rows)
    taken = [
        array if along[value.name] is None else np.take(array, chosen, along[value.name])
        for value, array in zip(kernel.inputs, inputs, strict=True)
    ]
    axes = (axis, *(result.axes[-2] for result in kernel.more))
    return taken, [np.take(result, chosen, own) for result, own in zip(results, axes, strict=True)]


def _row_axes(kernel: Product) -> dict[str, int | None] | None:
    """Return which axis of each input runs with the rows; None if one has two answers."""
    if kernel.shares_numbers:
        return None  # a number may belong to several rows
    uses: list[tuple[Value, int | None]] = [(read.value, None) for read in kernel.b.reads]
    uses += [(read.value, read.axes[-1 - kernel.depth]) for read in kernel.a.reads]
    uses += [(read.value, read.axes[-2]) for read in kernel.reads]
    along: dict[str, int | None] = {}
    for value, axis in uses:
        if along.setdefault(value.name, axis) != axis:
            return None
    return along


def _rows(count: int) -> npt.NDArray[np.intp]:
    """Return at most ``_ROWS`` of ``count`` rows, the first and the last among them."""
    spread = np.linspace(0, count - 1, _ROWS - 2).astype(np.intp)
    return np.unique(np.concatenate([spread, [0, count - 1]]))
