# SPDX-License-Identifier: MIT
"""What combinations that were reported to be wrong do here: built past the rules, run, compared.

``arch_specs/*.json`` keep a row for each report with what this script saw (``seen``). Run it after
a change of CK Tile's tree or of our templates, and copy what it prints::

    python benchmarks/known_wrong.py [gfx942 ...]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

from cklang.errors import CkError
from cklang.families.gemm.key import Algorithm
from cklang.testing import plain_key, self_test
from cklang.types import DTYPES, DType, f16, f32

F16 = Algorithm(
    tile=(128, 128, 32), warps=(2, 2, 1), warp_tile=(32, 32, 8), vector_a=8, vector_b=8, vector_e=8
)
WMMA = replace(F16, warp_tile=(16, 16, 16))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One algorithm of a known-wrong row."""

    row: str
    arch: str
    algorithm: Algorithm
    dtype: DType = f16

    def __str__(self) -> str:
        a = self.algorithm
        shape = ", ".join("x".join(map(str, t)) for t in (a.tile, a.warps, a.warp_tile))
        return f"{self.arch} {self.row}: {self.dtype} {a.pipeline.value} {shape}"


FP8 = DTYPES["fp8_fnuz"]
CASES = (
    Case(row="cshuffle-odd-repeat", arch="gfx942", algorithm=replace(F16, tile=(192, 128, 32))),
    Case(row="cshuffle-odd-repeat", arch="gfx942", algorithm=replace(F16, tile=(128, 192, 32))),
    Case(row="cshuffle-odd-repeat", arch="gfx942", algorithm=replace(WMMA, tile=(96, 64, 64))),
    Case(row="compv3-eight-waves", arch="gfx942", algorithm=replace(F16, warps=(4, 2, 1))),
    Case(row="compv3-eight-waves", arch="gfx950",
         algorithm=replace(F16, tile=(256, 128, 32), warps=(4, 4, 1), vector_a=4, vector_b=4)),
    Case(row="compv3-eight-waves", arch="gfx1100",
         algorithm=replace(WMMA, tile=(64, 64, 32), warps=(4, 2, 1))),
    Case(row="compv3-eight-waves", arch="gfx1201",
         algorithm=replace(WMMA, tile=(64, 64, 32), warps=(4, 2, 1))),
    Case(row="fp8-k128", arch="gfx942",
         algorithm=replace(F16, tile=(64, 64, 128), warp_tile=(16, 16, 128)), dtype=FP8),
    Case(row="fp8-k128", arch="gfx942",
         algorithm=replace(F16, tile=(64, 64, 128), warp_tile=(32, 32, 64)), dtype=FP8),
)  # fmt: skip


def run(case: Case) -> str:
    """Build and run a case past the rules, and say how its result compares."""
    # 16-bit results are stored in eights, which is where cshuffle joins warp tiles; f16 holds the
    # sums exactly.
    result = case.dtype if case.dtype is f16 else f32
    width = 16 // result.bytes
    algorithm = replace(case.algorithm, vector_e=width)
    key = plain_key(algorithm, case.dtype, case.arch, result=result)
    try:
        return str(self_test(key, (400, 264, 200), f"emu:{case.arch}"))
    except CkError as refusal:
        return f"refused: {refusal.message}"


def cases(archs: list[str]) -> Iterator[Case]:
    """The cases of the named GPUs, or all."""
    return (case for case in CASES if not archs or case.arch in archs)


if __name__ == "__main__":
    for case in cases(sys.argv[1:]):
        sys.stdout.write(f"{case}: {run(case)}\n")
        sys.stdout.flush()
