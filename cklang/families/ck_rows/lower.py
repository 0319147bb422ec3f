# SPDX-License-Identifier: MIT
"""CK Tile's own kernels of rows: a key becomes C++ that names them."""

from cklang.families.ck_rows.key import CkTileRowsKey, UpstreamKernel
from cklang.families.ck_rows.rules import TILE
from cklang.families.closed_source import flag
from cklang.fusion.functions import Functions
from cklang.lowering.render import key_json, template
from cklang.lowering.source import KernelSource

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
