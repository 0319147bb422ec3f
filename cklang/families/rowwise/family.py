# SPDX-License-Identifier: MIT
"""The family of reductions of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from cklang.arch import ArchSpec
from cklang.codec import encode, unknown
from cklang.device.resources import Resources
from cklang.families.grid import walk
from cklang.families.protocol import (
    DEFAULT_PRESET,
    Family,
    Launches,
    Operands,
    Planning,
    Sel,
)
from cklang.families.rowwise.cost import RowwiseCost
from cklang.families.rowwise.fuse import MAKERS, FusedRows
from cklang.families.rowwise.host import RowwiseShim
from cklang.families.rowwise.key import RowwiseAlgorithm, RowwiseKey, RowwiseSignature
from cklang.families.rowwise.lower import lower_rowwise
from cklang.families.rowwise.problem import RowwiseProblem, problem_of
from cklang.families.rowwise.rules import GRID, RULES
from cklang.families.rule import RuleSet
from cklang.families.stage import Stage
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.functions import Functions
from cklang.keys import AnyKey, opened
from cklang.lowering.source import KernelSource

__all__ = ["ROWWISE", "Rowwise"]

_SMALL = 0x3C
"""A byte that makes a small number in every floating format."""


class Rowwise(Family[RowwiseSignature, RowwiseAlgorithm, RowwiseProblem]):
    """Sums and maxima of rows, with a function of the reduced row."""

    name = "rowwise"
    signature = RowwiseSignature
    algorithm = RowwiseAlgorithm
    algorithm_text: ClassVar[str] = "a cklang.RowwiseAlgorithm for an op that reduces rows"
    makers = MAKERS
    rules: RuleSet = RULES
    grid = GRID

    def candidates(
        self, signature: RowwiseSignature, spec: ArchSpec, preset: str
    ) -> tuple[RowwiseAlgorithm, ...]:
        """Return every legal algorithm: there is one preset."""
        if preset != DEFAULT_PRESET:
            raise unknown("preset", preset, [DEFAULT_PRESET])
        return tuple(walk(GRID, opened(signature), spec, GRID.everything))

    def cost(
        self, keys: Sequence[RowwiseKey], spec: ArchSpec, built: Mapping[AnyKey, Resources]
    ) -> RowwiseCost:
        """Return the cost model, which does not ask for built kernels."""
        return RowwiseCost(keys, spec)

    def lower(self, key: RowwiseKey, functions: Functions) -> KernelSource:
        """Return the source of a kernel."""
        return lower_rowwise(key, functions)

    def problem(
        self, kernel: FusedRows, layouts: Mapping[str, TensorLayout], dims: Mapping[str, int]
    ) -> RowwiseProblem | None:
        """Return the problem of a kernel; None if there is no row."""
        problem = problem_of(kernel, layouts)
        return problem if problem.rows else None

    def plan(self, kernel: FusedRows, planning: Planning[Sel]) -> Iterator[Launches[Sel]]:
        """Yield the one launch of a kernel."""
        problem = self.problem(kernel, planning.layouts, planning.dims)
        if problem is not None:
            selection = planning.select(problem, kernel.functions)
            main = _stage(problem, selection.key, kernel.functions)
            yield Launches(selection=selection, main=main)

    def algorithm_words(self, algorithm: RowwiseAlgorithm) -> str:
        """Return an algorithm as one line of text."""
        return f"{algorithm.threads} threads a row, vectors of {algorithm.vector}"

    def candidate_words(self, algorithm: RowwiseAlgorithm) -> str:
        """Return both choices."""
        return f"{algorithm.threads}x{algorithm.vector}"

    def operands(self, problem: RowwiseProblem, key: RowwiseKey, functions: Functions) -> Operands:
        """Return memory of small numbers for every tensor."""
        forwards = problem.forwards
        contents = {
            each.value: np.full(each.span * each.dtype.bytes, _SMALL, np.uint8)
            for each in forwards.tensors
        }
        return Operands(contents=contents, stages=(_stage(forwards, key, functions),))

    def problem_facts(self, problem: RowwiseProblem) -> Any:
        """Return a problem as plain data."""
        return encode(problem)


def _stage(problem: RowwiseProblem, key: RowwiseKey, functions: Functions) -> Stage:
    return Stage(
        key=key,
        functions=functions,
        problem=problem,
        shim=RowwiseShim,
        values=tuple(each.value for each in problem.tensors),
        written=frozenset((problem.y.value,)),
        request=problem.request,
    )


ROWWISE = Rowwise()
