# SPDX-License-Identifier: MIT
"""Machine code of our universal GEMM beside upstream's own single-kernel unit, same compiler.

One configuration, no epilogue function and no D operand on either side. Upstream's unit holds one
kernel for each (hot loop, tail) that its launcher may pick; the one with a hot loop is compared,
since ours is that one for every K.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from pathlib import Path

import upstream_unit

from cklang.build import code_object
from cklang.build.steps import assembly, compile_inline, compile_stencil, link_fill
from cklang.families.gemm.key import Algorithm, GemmKey, Layout, Signature
from cklang.families.gemm.lower import lower
from cklang.fusion.functions import Functions
from cklang.ir.parser import parse_function
from cklang.toolchain.compilers import CkTree, Toolchain, find_ck_tree, find_toolchain
from cklang.types import f16, f32

_IDENTITY = Functions(
    epilogue=parse_function("func @epilogue(%acc: f32[]) -> f32[] {\n  return %acc\n}")
)
_ALGORITHM = Algorithm(
    tile=(128, 128, 32), warps=(2, 2, 1), warp_tile=(32, 32, 16), vector_a=8, vector_b=8, vector_e=8
)
_FUNCTION = re.compile(r"^(\w+):\s*; @", re.MULTILINE)
_GROUPS = {
    "v_mfma": "v_mfma",
    "ds_read": "ds_read",
    "ds_write": "ds_write",
    "buffer_load": "buffer_load",
    "buffer_store": "buffer_store",
    "s_barrier": "s_barrier",
    "all": "",
}


def _ours(folder: Path, toolchain: Toolchain, tree: CkTree) -> dict[str, Counter[str]]:
    signature = Signature(
        dtype_a=f16,
        dtype_b=f16,
        dtype_acc=f32,
        dtype_e=f16,
        layout_a=Layout.ROW,
        layout_b=Layout.COL,
        functions=_IDENTITY.digest,
    )
    key = GemmKey(signature, _ALGORITHM, upstream_unit.ARCH)
    source = lower(key, _IDENTITY)
    compile_stencil(source.stencil, key.arch, folder, toolchain, tree)
    link_fill(folder / "stencil.bc", source.fill, key.arch, folder, toolchain)
    step = assembly(folder / "stencil.bc", source.fill, key.arch, folder, toolchain)
    return _bodies(step.file)


def _upstreams(folder: Path, toolchain: Toolchain, tree: CkTree) -> dict[str, Counter[str]]:
    source = upstream_unit.generate(folder, tree.include.parent)
    compile_inline(source, upstream_unit.ARCH, folder, toolchain, tree)
    step = assembly(folder / "kernel.bc", None, upstream_unit.ARCH, folder, toolchain)
    return _bodies(step.file)


def _bodies(file: Path) -> dict[str, Counter[str]]:
    """Instructions by mnemonic of each function of an assembly text."""
    _, *parts = _FUNCTION.split(file.read_text(encoding="utf-8"))
    return {
        name: code_object.count_instructions(body.partition("\n.Lfunc_end")[0])
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }


def _row(facts: code_object.KernelFacts, counts: Counter[str]) -> dict[str, int]:
    resources = {
        "VGPRs": facts.vgprs,
        "of them AGPRs": facts.agprs,
        "SGPRs": facts.sgprs,
        "spills": facts.vgpr_spills + facts.sgpr_spills,
        "LDS bytes": facts.lds_bytes,
    }
    return resources | {
        name: sum(n for mnemonic, n in counts.items() if mnemonic.startswith(prefix))
        for name, prefix in _GROUPS.items()
    }


def main() -> None:
    """Print the table."""
    toolchain, tree = find_toolchain(), find_ck_tree()
    columns: list[tuple[str, dict[str, int]]] = []
    for title, build in (("cklang", _ours), ("upstream", _upstreams)):
        with tempfile.TemporaryDirectory() as name:
            bodies = build(Path(name), toolchain, tree)
            kernels = code_object.read(Path(name, "kernel.hsaco")).kernels
        rows = [_row(facts, bodies[facts.name]) for facts in kernels]
        # The variant with a hot loop is the longest.
        rows.sort(key=lambda row: -row["all"])
        columns.append((f"{title} ({len(rows)} kernels)", rows[0]))
    print(f"{upstream_unit.ARCH}, f16, rcr, {upstream_unit.TILE}, {upstream_unit.TRAITS}")
    print("| | " + " | ".join(title for title, _ in columns) + " |")
    print("|---|---|---|")
    for name in columns[0][1]:
        print(f"| {name} | " + " | ".join(f"{row[name]:,}" for _, row in columns) + " |")


if __name__ == "__main__":
    main()
