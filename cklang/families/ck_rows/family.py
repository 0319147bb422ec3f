# SPDX-License-Identifier: MIT
"""The family of CK Tile's own kernels of rows, which kernels of rows take where one is named."""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from cklang.arch import ArchSpec
from cklang.device.resources import Resources
from cklang.errors import error
from cklang.families.ck_rows.gate import FusedGate, as_named, gate_problem
from cklang.families.ck_rows.host import WideLinesShim
from cklang.families.ck_rows.key import (
    CkTileRows,
    CkTileRowsKey,
    CkTileRowsSignature,
    UpstreamKernel,
)
from cklang.families.ck_rows.lower import lower_ck_rows
from cklang.families.ck_rows.problem import CkTileRowsProblem, problem_of
from cklang.families.ck_rows.recognise import PATTERNS, matched
from cklang.families.ck_rows.rules import RULES
from cklang.families.lines import LinesShim
from cklang.families.memory_cost import MemoryCost
from cklang.families.protocol import Family, Launches, Planning, Sel
from cklang.families.rowwise.family import ROWWISE
from cklang.families.rowwise.fuse import FusedRows
from cklang.families.rule import RuleSet
from cklang.families.stage import Stage
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.functions import NO_FUNCTIONS
from cklang.fusion.passes import Fusion
from cklang.keys import AnyKey


class _CkTileRowsFamily(
    Family[FusedRows | FusedGate, CkTileRowsSignature, CkTileRows, CkTileRowsProblem]
):
    """RMSNorm, LayerNorm, sums, maxima and transposes as CK Tile has them."""

    name = "ck_rows"
    signature = CkTileRowsSignature
    algorithm = CkTileRows
    algorithm_text: ClassVar[str] = "a cklang.dispatch.CkTileRows for CK Tile's own kernel of rows"
    fusion = Fusion(passes={"gating": as_named})
    rules: RuleSet = RULES

    def candidates(
        self, signature: CkTileRowsSignature, spec: ArchSpec, preset: str
    ) -> tuple[CkTileRows, ...]:
        """Return none: an op names these kernels."""
        return ()

    def cost(
        self, keys: Sequence[CkTileRowsKey], spec: ArchSpec, built: Mapping[AnyKey, Resources]
    ) -> MemoryCost:
        """Return the model of a launch and its bytes."""
        return MemoryCost(keys, spec)

    lower = staticmethod(lower_ck_rows)

    def problem(
        self,
        kernel: FusedRows | FusedGate,
        layouts: Mapping[str, TensorLayout],
        dims: Mapping[str, int],
    ) -> CkTileRowsProblem | None:
        """Return the problem of a kernel of rows; None if its result has no element.

        Raises:
            CkUnsupportedError: X031, CK Tile has no kernel that computes it.
        """
        if isinstance(kernel, FusedGate):
            return gate_problem(kernel, layouts, dims)
        match = matched(kernel.body)
        if match is None:
            known = ", ".join(each.value for each in (*PATTERNS, UpstreamKernel.TOPK_SOFTMAX))
            raise error("X031", name=kernel.name, known=known)
        rows = ROWWISE.problem(kernel, layouts, dims)
        return None if rows is None else problem_of(match, rows)

    def plan(
        self, kernel: FusedRows | FusedGate, planning: Planning[Sel]
    ) -> Iterator[Launches[Sel]]:
        """Yield the one launch of a kernel."""
        problem = self.problem(kernel, planning.layouts, planning.dims)
        if problem is None:
            return
        selection = planning.select(problem, NO_FUNCTIONS)
        main = Stage(
            key=selection.key,
            problem=problem,
            shim=WideLinesShim if problem.signature.kernel.quantises else LinesShim,
            values=tuple(tensor.value for tensor in problem.tensors),
            written=frozenset(result.value for result in problem.results),
            request=problem.request,
        )
        yield Launches(selection=selection, main=main)

    def algorithm_words(self, algorithm: CkTileRows) -> str:
        """Return an algorithm as one line of text."""
        a = algorithm
        passes = ", in two passes" if a.two_pass else ""
        return f"CK Tile's kernel: {a.threads} threads, {a.repeats} vectors of {a.vector}{passes}"


CK_ROWS = _CkTileRowsFamily()
