# SPDX-License-Identifier: MIT
"""Where compile time goes: each build step, beside upstream's own unit for one kernel.

Everything is compiled by the same clang with the same HIP headers, in one run on this machine.
Wall seconds and processor seconds are both printed: on a busy machine compare the latter.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import upstream_unit

from cklang.build.steps import (
    compile_headers,
    compile_host,
    compile_stencil,
    link_fill,
)
from cklang.families.gemm.key import DKind, DOperand, GemmKey, Layout, Signature
from cklang.families.gemm.lower import lower
from cklang.fusion.functions import Functions
from cklang.ir.parser import parse_function
from cklang.selection.candidates import candidates
from cklang.toolchain.compilers import find_ck_tree, find_toolchain
from cklang.types import f16, f32

ARCH = "gfx942"

EPILOGUE = Functions(
    epilogue=parse_function("""
func @epilogue(%acc: f32[], %d0: f32[], %d1: f32[]) -> f32[] {
  %0: f32[] = add(%acc, %d0)
  %1: f32[] = gelu(%0)
  %2: f32[] = add(%1, %d1)
  return %2
}
""")
)


def _key() -> GemmKey:
    signature = Signature(
        dtype_a=f16,
        dtype_b=f16,
        dtype_acc=f32,
        dtype_e=f16,
        layout_a=Layout.ROW,
        layout_b=Layout.COL,
        d=(DOperand(dtype=f16, kind=DKind.ROW), DOperand(dtype=f16, kind=DKind.FULL)),
        functions=EPILOGUE.digest,
    )
    return GemmKey(signature, candidates(signature, ARCH)[0], ARCH)


def timed(step: Callable[[], object]) -> tuple[float, float]:
    """Run ``step``; return wall seconds and the processor seconds of its child processes."""
    before, start = os.times(), time.perf_counter()
    step()
    wall, after = time.perf_counter() - start, os.times()
    used = after.children_user + after.children_system
    return wall, used - before.children_user - before.children_system


def main() -> None:
    """Print the table."""
    toolchain, tree = find_toolchain(), find_ck_tree()
    source = lower(_key(), EPILOGUE)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        device, host = folder / "device", folder / "host"
        for place in (device, host):
            place.mkdir()

        def headers(place: Path) -> None:
            compile_headers(ARCH, place, toolchain, tree, host=place is host)

        def face(*, precompiled: bool) -> None:
            header = host / "headers.pch" if precompiled else None
            compile_host(source.stencil, ARCH, folder, toolchain, tree, precompiled=header)

        def first(*, precompiled: bool) -> None:
            header = device / "headers.pch" if precompiled else None
            with ThreadPoolExecutor(2) as pool:
                beside = pool.submit(face, precompiled=precompiled)
                compile_stencil(source.stencil, ARCH, folder, toolchain, tree, precompiled=header)
                beside.result()
            fill()

        def fill() -> None:
            link_fill(folder / "stencil.bc", source.fill, ARCH, folder, toolchain)

        rows = {
            "headers, once per GPU": lambda: headers(device),
            "headers, once for the host": lambda: headers(host),
            "first kernel of a tile": lambda: first(precompiled=False),
            "the same, headers precompiled": lambda: first(precompiled=True),
            "host shim alone": lambda: face(precompiled=True),
            "new epilogue on a stencil": fill,
            "upstream's unit for one kernel": upstream_unit.measure,
        }
        print(f"{'':34}{'wall s':>9}{'cpu s':>9}")
        for label, step in rows.items():
            wall, used = timed(step)
            print(f"{label:34}{wall:9.2f}{used:9.2f}", flush=True)


if __name__ == "__main__":
    main()
