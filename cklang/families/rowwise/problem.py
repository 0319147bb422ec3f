# SPDX-License-Identifier: MIT
"""A reduction of rows as its kernels see it: extents, strides, and what is asked of a host shim."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cklang.errors import error
from cklang.families.gemm.layout import refuse_overlap
from cklang.families.rowwise.fuse import FusedRows
from cklang.families.rowwise.host import RowwiseOperand, RowwiseRequest
from cklang.families.rowwise.key import RowwiseSignature
from cklang.families.tensor_layout import TensorLayout
from cklang.types import DType

__all__ = ["RowwiseProblem", "RowwiseTensor", "problem_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowwiseTensor:
    """A tensor that a kernel reads or writes; strides in elements, 0 along axes of extent 1."""

    value: str
    """Its name in the program."""
    dtype: DType
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    alignment: int = 1
    """Largest power of two up to 4 that divides its address, in bytes."""

    @property
    def span(self) -> int:
        """Elements from the first place in memory to the last one, strides taken as positive."""
        pairs = zip(self.extents, self.strides, strict=True)
        return 1 + sum((extent - 1) * abs(stride) for extent, stride in pairs if extent)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowwiseProblem:
    """What is reduced: ``x`` has the axes of ``y`` in order, then the one that is reduced."""

    signature: RowwiseSignature
    x: RowwiseTensor
    y: RowwiseTensor
    reads: tuple[RowwiseTensor, ...] = ()
    """What the function reads."""

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return math.prod(self.y.extents)

    @property
    def length(self) -> int:
        """The elements of a row."""
        return self.x.extents[-1]

    @property
    def tensors(self) -> tuple[RowwiseTensor, ...]:
        """All tensors, by whose addresses the shim is asked."""
        return (self.x, self.y, *self.reads)

    @property
    def forwards(self) -> RowwiseProblem:
        """The same with all strides positive, so that every tensor begins at its address."""
        x, y, *reads = (
            replace(each, strides=tuple(map(abs, each.strides))) for each in self.tensors
        )
        return replace(self, x=x, y=y, reads=tuple(reads))

    def request(self, addresses: Sequence[int]) -> RowwiseRequest:
        """Return what the host shim is asked, for the addresses of :attr:`tensors`."""
        x, y, *reads = addresses[: len(self.tensors)]
        return RowwiseRequest(
            rows=self.y.extents,
            length=self.length,
            x=x,
            x_strides=self.x.strides[:-1],
            x_step=self.x.strides[-1],
            y=y,
            y_strides=self.y.strides,
            operands=tuple(
                RowwiseOperand(pointer=at, extents=each.extents, strides=each.strides)
                for at, each in zip(reads, self.reads, strict=True)
            ),
        )

    def __str__(self) -> str:
        axes = ", ".join(map(str, self.y.extents))
        return f"[{axes}] rows of {self.length}: {self.signature.words}"


def problem_of(kernel: FusedRows, layouts: Mapping[str, TensorLayout]) -> RowwiseProblem:
    """Return the problem of a kernel.

    Raises:
        CkValueError: A035, the result's elements overlap; A052, an operand is a prepared weight.
    """
    result = layouts[kernel.result.name]
    refuse_overlap(result)
    names = [kernel.x.value.name, *(value.name for value in kernel.reads)]
    for name in names:
        if layouts[name].prepared is not None:
            raise error("A052", name=layouts[name].name)
    x, *reads = (_tensor(name, layouts[name]) for name in names)
    perm = kernel.x.perm
    x = replace(
        x,
        # An axis that x does not have is one that it repeats along, or of extent 1.
        extents=(*result.shape, 1 if perm[-1] is None else x.extents[perm[-1]]),
        strides=tuple(0 if axis is None else x.strides[axis] for axis in perm),
    )
    return RowwiseProblem(
        signature=RowwiseSignature(
            reduction=kernel.reduction,
            dtype=x.dtype,
            dtype_o=result.dtype,
            output=kernel.output is not None,
            functions=kernel.functions.digest,
        ),
        x=x,
        y=_tensor(kernel.result.name, result),
        reads=tuple(reads),
    )


def _tensor(name: str, layout: TensorLayout) -> RowwiseTensor:
    pairs = zip(layout.shape, layout.strides, strict=True)
    return RowwiseTensor(
        value=name,
        dtype=layout.dtype,
        extents=layout.shape,
        strides=tuple(0 if extent == 1 else stride for extent, stride in pairs),
        alignment=layout.alignment,
    )
