# SPDX-License-Identifier: MIT
"""Which algorithms reduce which rows, and the grid of all that there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cklang.arch import ArchSpec
from cklang.families.bounds import multiple
from cklang.families.grid import Grid, Pattern
from cklang.families.rowwise.key import RowwiseAlgorithm, RowwiseSignature
from cklang.families.rowwise.problem import RowwiseProblem
from cklang.families.rule import RuleSet, Violation
from cklang.ir.reductions import ROW_DTYPES
from cklang.types import DType
from cklang.widths import ACCESS_BYTES, DWORD_BYTES

__all__ = ["BLOCK", "GRID", "RULES", "vectors"]

BLOCK = 256
"""Threads of a workgroup: ``rowwise_threads`` of the kernel."""

_THREADS = (256, 64, 16)
"""Threads of a row that ``*`` tries: a workgroup, a wave of CDNA, a few."""

RULES = RuleSet(placeholder=RowwiseAlgorithm(threads=BLOCK, vector=1))
"""The rules of kernels that reduce rows."""


def vectors(dtype: DType) -> tuple[int, ...]:
    """Return how many elements an access may load: 16 bytes, 4 bytes, or one element."""
    sizes = (ACCESS_BYTES // dtype.bytes, DWORD_BYTES // dtype.bytes, 1)
    return tuple(dict.fromkeys(sizes))


@RULES.algorithm("row-dtypes", "kernels reduce and write f16, bf16 and f32", reads=())
def _dtypes(_a: RowwiseAlgorithm, s: RowwiseSignature, _spec: ArchSpec) -> Violation | None:
    for what, dtype in (("the type of x", s.dtype), ("the type of y", s.dtype_o)):
        if dtype not in ROW_DTYPES:
            legal = ", ".join(map(str, ROW_DTYPES))
            return Violation(what=what, value=str(dtype), bound=f"one of {legal}")
    return None


@RULES.algorithm(
    "row-threads", "lanes exchange their parts in pairs, within a workgroup", reads=("threads",)
)
def _threads(a: RowwiseAlgorithm, _s: RowwiseSignature, _spec: ArchSpec) -> Violation | None:
    if a.threads <= BLOCK and a.threads & (a.threads - 1) == 0:
        return None
    bound = f"a power of two up to {BLOCK}"
    return Violation(what="the threads of a row", value=str(a.threads), bound=bound)


@RULES.algorithm(
    "row-vector", "an access loads 16 bytes, 4 bytes or one element", reads=("vector",)
)
def _vector(a: RowwiseAlgorithm, s: RowwiseSignature, _spec: ArchSpec) -> Violation | None:
    legal = vectors(s.dtype)
    if a.vector in legal:
        return None
    bound = f"one of {', '.join(map(str, legal))}"
    return Violation(what="the elements of an access", value=str(a.vector), bound=bound)


@RULES.problem("row-contiguous", "vectors lie along a row, from whole dwords on", reads=("vector",))
def _contiguous(p: RowwiseProblem, a: RowwiseAlgorithm, _spec: ArchSpec) -> Violation | None:
    if a.vector == 1 or p.length < 2:
        return None
    *steps, step = p.x.strides
    if step != 1:
        return Violation(what="the stride within a row", value=str(step), bound="1")
    size = p.x.dtype.bytes
    for what, value in (
        ("the alignment of the address in bytes", p.x.alignment),
        *(("the stride of an axis of rows in bytes", each * size) for each in steps),
    ):
        violation = multiple(what, value, DWORD_BYTES)
        if violation is not None:
            return violation
    return None


def _values(name: str, signature: RowwiseSignature, _spec: ArchSpec) -> Sequence[int]:
    return {"threads": _THREADS, "vector": vectors(signature.dtype)}[name]


def _choices(
    step: str, signature: RowwiseSignature, spec: ArchSpec, among: Pattern
) -> Iterator[dict[str, Any]]:
    for value in among.values(step, _values(step, signature, spec)):
        yield {step: value}


GRID: Grid[RowwiseAlgorithm] = Grid(
    of=RowwiseAlgorithm,
    order=("threads", "vector"),
    joint={},
    choices=_choices,
    values=_values,
    rules=RULES,
)
"""All algorithms: nine of narrow types, six of f32."""
