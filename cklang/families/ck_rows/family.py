# SPDX-License-Identifier: MIT
"""The family of CK Tile's own kernels of rows, which kernels of rows take where one is named.

The C side of their host shim is ``include/cklang/wide_lines.h``; the struct layouts here mirror it.
"""

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from cklang.arch import ArchSpec
from cklang.device.host_shim import HostShim
from cklang.device.resources import Resources
from cklang.errors import error
from cklang.families.ck_rows.gate import FusedGate, as_named, gate_problem
from cklang.families.ck_rows.key import (
    CkTileRows,
    CkTileRowsKey,
    CkTileRowsSignature,
    UpstreamKernel,
)
from cklang.families.ck_rows.problem import CkTileRowsProblem, problem_of
from cklang.families.ck_rows.recognise import PATTERNS, matched
from cklang.families.ck_rows.rules import RULES, TILE
from cklang.families.closed_source import flag
from cklang.families.lines import MAX_TENSORS, LinesRequest, LinesShim
from cklang.families.memory_cost import MemoryCost
from cklang.families.protocol import Family, Launches, Planning, Sel
from cklang.families.rowwise.family import ROWWISE
from cklang.families.rowwise.fuse import FusedRows
from cklang.families.rule import RuleSet
from cklang.families.stage import Stage
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.functions import NO_FUNCTIONS, Functions
from cklang.fusion.passes import Fusion
from cklang.keys import AnyKey
from cklang.lowering.render import key_json, template
from cklang.lowering.source import KernelSource

MORE_TENSORS = 2
"""CK_LINES_MORE_TENSORS."""


class _Wide(ctypes.Structure):
    _fields_ = (
        ("lines", type(LinesShim.to_c(LinesRequest(outer=(), inner=(), tensors=())))),
        ("more", ctypes.c_void_p * MORE_TENSORS),
    )


def _to_c(request: LinesRequest) -> _Wide:
    first, more = request.tensors[:MAX_TENSORS], request.tensors[MAX_TENSORS:]
    wide = _Wide(lines=LinesShim.to_c(replace(request, tensors=first)))
    for place, tensor in enumerate(more):
        wide.more[place] = tensor.pointer
    return wide


class WideLinesShim(HostShim[LinesRequest]):
    """A loaded ``host.so`` of a kernel of lines of up to six tensors."""

    symbol = LinesShim.symbol
    version_symbol = LinesShim.version_symbol
    version = LinesShim.version
    to_c = staticmethod(_to_c)


_HEADERS = {
    UpstreamKernel.RMSNORM2D: ("epilogue", "rmsnorm2d"),
    UpstreamKernel.LAYERNORM2D: ("epilogue", "layernorm2d"),
    UpstreamKernel.REDUCE_SUM: ("reduce",),
    UpstreamKernel.REDUCE_MAX: ("reduce",),
    UpstreamKernel.ELEMENTWISE_ADD: ("elementwise",),
    UpstreamKernel.BATCHED_TRANSPOSE: ("batched_transpose",),
    UpstreamKernel.PERMUTE: ("permute",),
}
"""What kernels that share a template include."""

_TEMPLATES = {
    UpstreamKernel.SMOOTHQUANT: "ck_row_quant.hip.j2",
    UpstreamKernel.ADD_RMSNORM2D_RDQUANT: "ck_row_quant.hip.j2",
    UpstreamKernel.POOL_SUM: "ck_windows.hip.j2",
    UpstreamKernel.POOL_MAX: "ck_windows.hip.j2",
    UpstreamKernel.IMAGE_TO_COLUMN: "ck_windows.hip.j2",
    UpstreamKernel.TOPK_SOFTMAX: "ck_gate.hip.j2",
}
"""The templates of the others."""

_SHARED = (UpstreamKernel.ELEMENTWISE_ADD, UpstreamKernel.POOL_SUM, UpstreamKernel.POOL_MAX)
"""Kernels whose workgroups have as many results as their threads load elements at once."""


def lower_ck_rows(key: CkTileRowsKey, functions: Functions) -> KernelSource:
    """Return the source of one of CK Tile's kernels of rows."""
    s, a = key.signature, key.algorithm
    kernel = "ck_" + "_".join(s.label(a))
    text = template(_TEMPLATES.get(s.kernel, "ck_rows.hip.j2")).render(
        key_json=key_json(key),
        kernel=kernel,
        words=s.words,
        upstream=s.kernel.value,
        headers=_HEADERS.get(s.kernel, ()),
        x=s.dtype.ck,
        y=s.result.ck,
        threads=a.threads,
        waves=a.threads // 64,
        vector=a.vector,
        block=a.longest,
        wave_tile=64 * a.vector * a.repeats,
        tile=TILE,
        per_workgroup=a.longest if s.kernel in _SHARED else a.threads,
        pools=s.kernel.pools,
        header="pooling" if s.kernel.pools else s.kernel.value,
        passes="TwoPass" if a.two_pass else "OnePass",
        two_pass=flag(a.two_pass),
        experts=s.experts,
        repeats=a.repeats,
        rows_of_gate=a.threads * a.repeats // min(max(s.experts, 1), 64),
        padded=flag(a.vector == 1),
    )
    return KernelSource(stencil=text, fill="", hole="", kernel=kernel, host_headers=False)


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
            known = ", ".join(pattern.value for pattern in (*PATTERNS, UpstreamKernel.TOPK_SOFTMAX))
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
