# SPDX-License-Identifier: MIT
"""Which widths of vector accesses an algorithm may have for a signature.

A width in bytes is chosen for each axis that is contiguous in some operand, so operands that
share an axis move equally many bytes: what spoils wide accesses of one (an odd extent) spoils
those of the other. Not so the weights of a convolution: they end with the channels of one group,
where those of an image may go on, so they may move single elements beside wide accesses.
"""

from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import NamedTuple

from cklang.families.gemm.key import Layout, ProductKind, Signature
from cklang.types import DType
from cklang.widths import ACCESS_BYTES

_EIGHTS = 8
"""Elements of a packed dtype in a dword, which is what an access moves at least."""


class Vectors(NamedTuple):
    """Elements of each operand that one access moves."""

    a: int
    b: int
    e: int
    d: tuple[int, ...]


@cache
def vector_choices(signature: Signature, widths: Sequence[int]) -> tuple[Vectors, ...]:
    """Return every distinct choice, those that move most bytes first.

    ``widths`` are bytes that an access may move; 1 stands for one element.
    """
    axes = sorted({*_axes(signature), "n"})
    choices = [dict(zip(axes, taken, strict=True)) for taken in product(widths, repeat=len(axes))]
    if signature.spatial:
        shared = "k" if "k" in axes else "n"
        choices = [
            {**choice, "weight": width}
            for choice in choices
            for width in dict.fromkeys((choice[shared], min(widths)))
        ]
    distinct = {_vectors(signature, choice): choice for choice in reversed(choices)}
    return tuple(sorted(distinct, key=lambda v: _preference(distinct[v])))


def _preference(choice: dict[str, int]) -> tuple[int, int]:
    return -sum(choice.values()), -choice.get("k", 0)


def _axes(signature: Signature) -> tuple[str, str]:
    """The contiguous axes of A and of B."""
    a = "k" if signature.layout_a is Layout.ROW else "m"
    if signature.dtype_a.packed:
        a = "packed"
    b = "n" if signature.layout_b is Layout.ROW else "k"
    if signature.dtype_b.packed:
        b = "packed"  # its rows are filled up to whole accesses, whatever K is
    return a, b


def _vectors(signature: Signature, widths: dict[str, int]) -> Vectors:
    axis_a, axis_b = _axes(signature)
    prepared = signature.layout_b is Layout.PREPARED
    axis_e = "n"
    if signature.kind is ProductKind.CONV_GRAD_WEIGHT:
        axis_e = "weight"
    elif signature.spatial:
        axis_b = "weight"
    e = _elements(signature.dtype_e, widths[axis_e])
    ds = tuple(
        # A thread owns vector_e neighbours of E, so wider loads of D would not be used.
        min(e, _elements(d.dtype, widths[axis_e])) if d.kind.contiguous else 1
        for d in signature.d
    )
    return Vectors(
        a=_elements(signature.dtype_a, widths[axis_a]),
        # What is prepared has no ends that accesses could cross.
        b=_elements(signature.dtype_b, ACCESS_BYTES if prepared else widths[axis_b]),
        e=e,
        d=ds,
    )


def _elements(dtype: DType, width: int) -> int:
    least = _EIGHTS if dtype.packed else 1
    return max(least, width * 8 // dtype.bits)
