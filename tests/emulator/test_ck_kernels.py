# SPDX-License-Identifier: MIT
"""CK Tile kernels on emulated GPUs: instructions that only some layouts and GPUs use."""

from __future__ import annotations

import pytest

import cklang as ck
from cklang import emulator, knobs
from tests.support.arrays import drawn, mnk
from tests.support.assembly import DEVICES
from tests.support.checks import check

pytestmark = pytest.mark.usefixtures("compiler")

M, N, K = ck.dims("M N K")
SIZES = mnk(128, 192, 96)


@ck.op
def matmul(x: ck.f16[M, K], w: ck.f16[K, N]) -> ck.f16[M, N]:
    return x @ w


@ck.op
def matmul32(x: ck.f16[M, K], w: ck.f16[K, N]) -> ck.f32[M, N]:
    return x @ w


def test_row_major_b_on_gfx950_is_read_transposed() -> None:
    check(matmul, drawn(matmul, SIZES), "gfx950")
    assert emulator.fidelity(DEVICES.index("gfx950"))["ds_read_b64_tr_b16"] > 0


def test_a_gemm_passes_in_every_numerics() -> None:
    """Three ways of rounding, three different results, all within the reference's bound."""
    args, results = drawn(matmul32, SIZES), {}
    try:
        for mode in ("fma", "exact", "cdna3"):
            emulator.numerics(mode)
            results[mode] = check(matmul32, args)
    finally:
        emulator.numerics(knobs.NUMERICS.get())
    assert all((results["fma"] != results[mode]).any() for mode in ("exact", "cdna3"))
    assert (results["exact"] != results["cdna3"]).any()


@pytest.mark.parametrize("arch", DEVICES[:2])
def test_no_wait_and_no_barrier_is_missing(arch: str) -> None:
    """CK Tile's main loops keep many loads under way, and wait for each before its use."""
    args = drawn(matmul, SIZES)
    emulator.sanitize("waits", "races")
    try:
        check(matmul, args, arch)
    finally:
        emulator.sanitize(*knobs.SANITIZE.get())
