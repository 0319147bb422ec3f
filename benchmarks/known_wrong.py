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
from typing import Any

import numpy as np

from cklang.errors import CkError
from cklang.fusion.plan import epilogue_hash
from cklang.ir.parser import parse_function
from cklang.keys import Algorithm, KernelKey, Layout, Signature
from cklang.runtime.build import shared_builder
from cklang.runtime.device import open_device
from cklang.runtime.launch import loaded
from cklang.runtime.problem import Problem, problem
from cklang.types import DTYPES, DType, f16, f32

PASS = parse_function("func @epilogue(%acc: f32[]) -> f32[] {\n  return %acc\n}")

F16 = Algorithm(
    tile=(128, 128, 32),
    warps=(2, 2, 1),
    warp_tile=(32, 32, 8),
    vector_a=8,
    vector_b=8,
    vector_e=8,
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
    Case(row="cshuffle-odd-repeat", arch="gfx942", algorithm=replace(WMMA, tile=(96, 64, 32))),
    Case(row="compv3-eight-waves", arch="gfx942", algorithm=replace(F16, warps=(4, 2, 1))),
    Case(
        row="compv3-eight-waves",
        arch="gfx950",
        algorithm=replace(F16, tile=(256, 128, 32), warps=(4, 4, 1), vector_a=4, vector_b=4),
    ),
    Case(
        row="compv3-eight-waves",
        arch="gfx1100",
        algorithm=replace(WMMA, tile=(64, 64, 32), warps=(4, 2, 1)),
    ),
    Case(
        row="compv3-eight-waves",
        arch="gfx1201",
        algorithm=replace(WMMA, tile=(64, 64, 32), warps=(4, 2, 1)),
    ),
    Case(
        row="fp8-k128",
        arch="gfx942",
        algorithm=replace(F16, tile=(64, 64, 128), warp_tile=(16, 16, 128)),
        dtype=FP8,
    ),
    Case(
        row="fp8-k128",
        arch="gfx942",
        algorithm=replace(F16, tile=(64, 64, 128), warp_tile=(32, 32, 64)),
        dtype=FP8,
    ),
)


def run(case: Case, m: int = 400, n: int = 264, k: int = 200) -> str:
    """Build and run a case past the rules, and say how its result compares."""
    made = problem(m, n, k, a=case.dtype, e=f32, epilogue=epilogue_hash(PASS))
    algorithm = replace(case.algorithm, vector_e=min(case.algorithm.vector_e, 4))
    key = KernelKey(signature_of(made), algorithm, case.arch)
    try:
        (artifact,) = shared_builder().build_all([(key, PASS)])
    except CkError as refusal:
        return f"does not compile: {refusal.message}"
    x, w = operands(case.dtype, m, k), operands(case.dtype, n, k)
    got = np.full((m, n), np.nan, np.float32)
    device = open_device(f"emu:{case.arch}")
    kernel = loaded(device, artifact)
    try:
        shape = kernel.prepare(made)
    except CkError as refusal:
        return f"refused by CK Tile: {refusal.message}"
    launch = device.launch(kernel.function, shape.grid, shape.block, shape.kernarg)
    for array, words in zip((x, w, got), shape.pointers, strict=True):
        for word in words:
            launch.words[word] = array.ctypes.data
    device.activate()
    try:
        launch(None)
        device.synchronize()
    except CkError as fault:
        return f"faults: {fault.message}"
    want = x.astype(np.float64) @ w.astype(np.float64).T
    return verdict(got, want)


def signature_of(made: Problem) -> Signature:
    """The signature of a problem of two row-major f32-accumulated operands."""
    return replace(made.signature, layout_a=Layout.ROW)


def operands(dtype: DType, *shape: int) -> np.ndarray[Any, Any]:
    """Small integers, which every product and sum holds exactly."""
    rng = np.random.default_rng(sum(shape))
    return rng.integers(-3, 4, shape).astype(np.float32).astype(dtype.numpy)


def verdict(got: np.ndarray[Any, Any], want: np.ndarray[Any, Any]) -> str:
    """Say how many elements are wrong."""
    wrong = int(np.count_nonzero(got != want))
    if not wrong:
        return f"right: all {got.size} elements exact"
    zeros = ", all of them zero" if not got.any() else ""
    return f"wrong: {wrong / got.size:.2%} of the elements{zeros}"


def cases(archs: list[str]) -> Iterator[Case]:
    """The cases of the named GPUs, or all."""
    return (case for case in CASES if not archs or case.arch in archs)


if __name__ == "__main__":
    for case in cases(sys.argv[1:]):
        sys.stdout.write(f"{case}: {run(case)}\n")
        sys.stdout.flush()
