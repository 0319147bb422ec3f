# SPDX-License-Identifier: MIT
"""Which algorithm may serve which problem: one function a rule, all of them in one table.

The same rows filter candidates, explain a choice and word a refusal. A rule looks at one fact and
returns what it saw against its bound, or None if it has no objection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cklang.arch import ArchSpec
from cklang.keys import Algorithm, DKind, Layout
from cklang.runtime.problem import Matrix, Operand, Problem, ReadAccess

__all__ = ["RULES", "Objection", "Rejection", "SelectionRule", "objections"]

_LAST_BYTE = 1 << 31
_DWORD = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """What a rule saw and what it allows."""

    what: str
    value: str
    bound: str


Check = Callable[[Problem, Algorithm, ArchSpec], Objection | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionRule:
    """One rule: its public name, what it demands, and the function that looks."""

    id: str
    sentence: str
    check: Check


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """Why one candidate was not taken."""

    algorithm: Algorithm
    rule: str
    sentence: str
    objection: Objection

    def __str__(self) -> str:
        o = self.objection
        return f"{self.rule}: {o.what} is {o.value}, must be {o.bound} ({self.sentence})"


_rules: list[SelectionRule] = []


def _rule(name: str, sentence: str) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        _rules.append(SelectionRule(id=name, sentence=sentence, check=check))
        return check

    return register


def objections(
    problem: Problem, algorithm: Algorithm, spec: ArchSpec
) -> Iterator[tuple[SelectionRule, Objection]]:
    """Yield each rule that rejects ``algorithm`` for ``problem``, in table order."""
    for rule in RULES:
        found = rule.check(problem, algorithm, spec)
        if found is not None:
            yield rule, found


def _multiple(what: str, value: int, of: int) -> Objection | None:
    if value % of == 0:
        return None
    return Objection(what=what, value=str(value), bound=f"a multiple of {of}")


def _vector_fits(name: str, matrix: Matrix, width: int) -> Objection | None:
    """Whether every vector of ``width`` elements ends inside its row and starts aligned."""
    axis = "columns" if matrix.layout is Layout.ROW else "rows"
    return _multiple(f"the number of {axis} of {name}", matrix.contiguous, width) or _aligned(
        name, matrix, matrix.stride, width
    )


def _aligned(name: str, operand: Operand, stride: int, width: int) -> Objection | None:
    """Whether accesses start at whole dwords, or at whole elements if they are narrower."""
    size = operand.dtype.bytes
    unit = min(width * size, _DWORD)
    return _multiple(f"the address alignment of {name} in bytes", operand.alignment, unit) or (
        _multiple(f"the leading stride of {name} in bytes", stride * size, unit)
    )


@_rule("operand-size", "a buffer descriptor counts bytes in 32 bits")
def _operand_size(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Objection | None:
    operands: list[tuple[str, Matrix | ReadAccess]]
    operands = [("A", problem.a), ("B", problem.b), ("E", problem.e)]
    operands += [(f"D{i}", d) for i, d in enumerate(problem.d)]
    for name, operand in operands:
        bytes_ = operand.span * operand.dtype.bytes
        if bytes_ >= _LAST_BYTE:
            return Objection(
                what=f"the span of {name} in bytes", value=str(bytes_), bound=f"below {_LAST_BYTE}"
            )
    return None


@_rule("threads", "a workgroup has a limited number of threads")
def _threads(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Objection | None:
    warps = algorithm.warps[0] * algorithm.warps[1] * algorithm.warps[2]
    threads = warps * spec.wave_size
    if threads <= spec.max_threads_per_block:
        return None
    return Objection(
        what="threads of a workgroup",
        value=str(threads),
        bound=f"at most {spec.max_threads_per_block}",
    )


@_rule("warp-tile", "the GPU has a fixed set of matrix instructions")
def _warp_tile(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Objection | None:
    dtypes = (problem.a.dtype.name, problem.b.dtype.name)
    legal = [(t.m, t.n, t.k) for t in spec.warp_tiles if (t.a, t.b) == dtypes]
    if algorithm.warp_tile in legal:
        return None
    return Objection(
        what=f"the warp tile for {dtypes[0]} by {dtypes[1]} on {spec.name}",
        value="x".join(map(str, algorithm.warp_tile)),
        bound="one of " + (", ".join("x".join(map(str, t)) for t in legal) or "(none)"),
    )


@_rule("pad-m", "without padding along M the extent must be whole tiles")
def _pad_m(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Objection | None:
    return None if algorithm.pad_m else _multiple("M", problem.m, algorithm.tile[0])


@_rule("pad-n", "without padding along N the extent must be whole tiles")
def _pad_n(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Objection | None:
    return None if algorithm.pad_n else _multiple("N", problem.n, algorithm.tile[1])


@_rule("pad-k", "without padding along K the extent must be whole tiles of each K split")
def _pad_k(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Objection | None:
    return (
        None
        if algorithm.pad_k
        else _multiple("K", problem.k, algorithm.tile[2] * algorithm.split_k)
    )


@_rule("vector-a", "each vector load of A is aligned and stays in its row or column")
def _vector_a(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Objection | None:
    return _vector_fits("A", problem.a, algorithm.vector_a)


@_rule("vector-b", "each vector load of B is aligned and stays in its row or column")
def _vector_b(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Objection | None:
    return _vector_fits("B", problem.b, algorithm.vector_b)


@_rule("vector-e", "each vector store of E is aligned and stays in its row")
def _vector_e(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Objection | None:
    return _vector_fits("E", problem.e, algorithm.vector_e)


@_rule("vector-d", "each vector load of an epilogue operand is aligned and stays in its row")
def _vector_d(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Objection | None:
    count, want = len(algorithm.vector_d), len(problem.d)
    if count != want:
        return Objection(what="the number of vector_d", value=str(count), bound=str(want))
    for index, (d, width) in enumerate(zip(problem.d, algorithm.vector_d, strict=True)):
        if d.kind not in (DKind.FULL, DKind.ROW):
            continue
        name = f"D{index}"
        found = _multiple("N", problem.n, width) or _aligned(name, d, d.stride_m, width)
        if found is not None:
            return found
    return None


RULES: tuple[SelectionRule, ...] = tuple(_rules)
"""Every rule, in the order in which they are asked."""
