# SPDX-License-Identifier: MIT
"""The family of lines in order."""

from collections.abc import Mapping
from dataclasses import dataclass

from cklang.errors import error
from cklang.families.closed_source import closed_source, flag
from cklang.families.lines import Lines, LinesShim, LineTensor, lines_of
from cklang.families.protocol import HelperFamily
from cklang.families.sort.fuse import MAKERS, FusedSort
from cklang.families.sort.key import SIZES, SortKey, SortSignature
from cklang.families.stage import Stage
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.functions import Functions
from cklang.fusion.passes import Fusion
from cklang.lowering.source import KernelSource

_THREADS = (64, 256)
"""Threads of a workgroup: at least, and at most. Each compares two items or more."""


def lower_sort(key: SortKey, functions: Functions) -> KernelSource:
    """Return the source of a kernel that puts lines in order."""
    s = key.signature
    least, most = _THREADS
    return closed_source(
        key,
        "sort.hip.j2",
        "ck_" + "_".join(s.label(None)),
        words=s.words,
        threads=min(max(s.size // 2, least), most),
        lines=1,
        longest=0,
        source=s.source.ck,
        size=s.size,
        values=flag(s.values),
        indices=flag(s.indices),
        descending=flag(s.descending),
    )


_PIECE = 1024
"""Items that are sorted at once if only the first elements of a line are wanted."""

_INDEX_BYTES = 4
"""Bytes of an index that is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SortProblem:
    """What is put in order, and where it lies."""

    signature: SortSignature
    lines: Lines
    wanted: int
    """Elements of a line."""

    @property
    def bytes(self) -> int:
        """What the kernel moves: each element is read, and those wanted are written."""
        s, lines = self.signature, self.lines
        written = s.source.bytes * s.values + _INDEX_BYTES * s.indices
        return lines.count * (lines.length * s.source.bytes + self.wanted * written)

    def __str__(self) -> str:
        s, lines = self.signature, self.lines
        which = "greatest" if s.descending else "least"
        if self.wanted == lines.length:
            return f"{lines.count} lines of {lines.length} in order"
        return f"the {self.wanted} {which} of {lines.count} lines of {lines.length}"


class _SortFamily(HelperFamily[FusedSort, SortSignature, SortProblem]):
    """Lines in order."""

    fusion = Fusion(makers=MAKERS)
    why = "the one kernel that sorts such lines"

    def problem(
        self, kernel: FusedSort, layouts: Mapping[str, TensorLayout], dims: Mapping[str, int]
    ) -> SortProblem | None:
        """Return the problem of a kernel; None if its result has no element.

        Raises:
            CkValueError: A045, two elements of a result are one in memory; A078, a line has fewer
                elements than wanted; A079, more than are sorted.
        """
        results = [layouts[value.name] for value in kernel.results]
        source, axis = kernel.source, kernel.axis
        lines = lines_of(kernel.type.extents(dims), axis, source, layouts, results)
        wanted = kernel.count or lines.length
        if wanted > lines.length:
            raise error("A078", name=source.value, count=wanted, axis=axis, extent=lines.length)
        if not lines.count * lines.length:
            return None
        signature = SortSignature(
            source=source.value.type.dtype,
            size=_size(kernel, wanted, lines.length),
            values=kernel.values is not None,
            indices=kernel.indices is not None,
            descending=kernel.descending,
        )
        return SortProblem(signature=signature, lines=_placed(lines, kernel), wanted=wanted)

    def stage(self, kernel: FusedSort, problem: SortProblem, key: SortKey) -> Stage:
        """Return the launch of a kernel."""
        names = [value.name for value in kernel.results]
        first = int(kernel.values is None)
        return Stage(
            key=key,
            problem=problem,
            shim=LinesShim,
            values=(kernel.source.value.name, *names),
            written=frozenset(names),
            request=lambda at: problem.lines.request(
                (at[0], *(0,) * first, *at[1 : 1 + len(names)]), extent=problem.wanted
            ),
        )


def _placed(lines: Lines, kernel: FusedSort) -> Lines:
    """Return lines with a place for the elements, where only their indices are written."""
    if kernel.values is not None:
        return lines
    source, *results = lines.tensors
    return Lines(outer=lines.outer, length=lines.length, tensors=(source, LineTensor(), *results))


def _size(kernel: FusedSort, wanted: int, length: int) -> int:
    """Return how many items are sorted at once: a line, or pieces beside what is wanted."""
    least = min(length, max(_PIECE, 2 * wanted))
    size = next((size for size in SIZES if size >= least), None)
    if size is None:
        limit = SIZES[-1] if wanted == length else SIZES[-1] // 2
        raise error("A079", name=kernel.source.value, count=wanted, extent=length, limit=limit)
    return size


SORT = _SortFamily("sort", SortSignature, lower_sort)
