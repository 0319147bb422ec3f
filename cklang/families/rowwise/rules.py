# SPDX-License-Identifier: MIT
"""Which algorithms compute which rows, and the grid of all that there are."""

from cklang.arch import ArchSpec
from cklang.families.bounds import among, at_most, first
from cklang.families.grid import independent
from cklang.families.rowwise.key import MOST_STAGES, RowwiseAlgorithm, RowwiseSignature
from cklang.families.rowwise.problem import RowwiseProblem
from cklang.families.rule import RuleSet, Violation
from cklang.types import DType, bf8, bf8_fnuz, bf16, f16, f32, fp8, fp8_fnuz, i8, i32

BLOCK = 256
"""Threads of a workgroup at least: ``RowShape::block`` of the kernel."""


WRITABLE: tuple[DType, ...] = (f16, bf16, f32, fp8, bf8, fp8_fnuz, bf8_fnuz, i8, i32)
"""What kernels of rows write."""

_KEPT_REGISTERS = 96
"""Registers of a thread that hold what is kept, at most; the rest is for the functions."""

_KEPT_OF_BLOCK = 65536
"""The same of a workgroup: half of what a compute unit has, so that 1024 threads do not spill."""

_THREADS = (64, 256, 1024, 16, 1)
_VECTORS = (8, 4, 2, 1)
_CHUNKS = (1, 2, 4, 8, 16, 0)

RULES = RuleSet(placeholder=RowwiseAlgorithm(threads=BLOCK, vector=1))
"""The rules of kernels of rows."""


@RULES.algorithm("row-outputs", "kernels of rows write numbers of 8 to 32 bits", reads=())
def _dtypes(_a: RowwiseAlgorithm, s: RowwiseSignature, spec: ArchSpec) -> Violation | None:
    legal = [dtype for dtype in WRITABLE if dtype.encoding in ("", spec.fp8)]
    return first(among("the type of a result", dtype, legal) for dtype in (*s.elements, *s.rows))


@RULES.algorithm("row-stages", "a kernel of rows has four functions for its stages", reads=())
def _stages(_a: RowwiseAlgorithm, s: RowwiseSignature, _spec: ArchSpec) -> Violation | None:
    return at_most("the reductions that follow from one another", len(s.reductions), MOST_STAGES)


@RULES.algorithm(
    "row-threads", "lanes exchange their parts in pairs, within a workgroup", reads=("threads",)
)
def _threads(a: RowwiseAlgorithm, _s: RowwiseSignature, spec: ArchSpec) -> Violation | None:
    most = spec.max_threads_per_block
    if a.threads <= most and a.threads & (a.threads - 1) == 0:
        return None
    bound = f"a power of two up to {most}"
    return Violation(what="the threads of a row", value=str(a.threads), bound=bound)


@RULES.algorithm("row-vector", "a thread computes 1, 2, 4 or 8 elements at once", reads=("vector",))
def _vector(a: RowwiseAlgorithm, _s: RowwiseSignature, _spec: ArchSpec) -> Violation | None:
    return among("the elements of a vector", a.vector, _VECTORS)


@RULES.algorithm(
    "row-registers",
    "what is kept of a row stands in registers",
    reads=("threads", "vector", "chunks"),
)
def _registers(a: RowwiseAlgorithm, s: RowwiseSignature, _spec: ArchSpec) -> Violation | None:
    if not a.chunks:
        return None
    if not s.kept + s.common:
        bound = "0, since no value of an element is needed by two passes or rows"
        return Violation(what="the vectors that are kept", value=str(a.chunks), bound=bound)
    count = a.chunks * a.vector * (s.kept + s.common)
    most = min(_KEPT_REGISTERS, _KEPT_OF_BLOCK // a.threads)
    return at_most("the registers that hold what is kept", count, most)


@RULES.problem("row-length", "a row has a vector or more", reads=("vector",))
def _length(p: RowwiseProblem, a: RowwiseAlgorithm, _spec: ArchSpec) -> Violation | None:
    if not p.length or p.length >= a.vector:
        return None
    bound = f"at least {a.vector}, the elements of a vector"
    return Violation(what="the length of a row", value=str(p.length), bound=bound)


@RULES.problem("row-kept", "registers hold a row", reads=("threads", "vector", "chunks"))
def _kept(p: RowwiseProblem, a: RowwiseAlgorithm, _spec: ArchSpec) -> Violation | None:
    if not a.chunks or p.length <= a.longest:
        return None
    bound = f"at most {a.longest}, which the algorithm keeps"
    return Violation(what="the length of a row", value=str(p.length), bound=bound)


GRID = independent(
    RowwiseAlgorithm, {"threads": _THREADS, "vector": _VECTORS, "chunks": _CHUNKS}, RULES
)
"""All algorithms."""
