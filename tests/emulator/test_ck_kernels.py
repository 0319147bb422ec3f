# SPDX-License-Identifier: MIT
"""CK Tile kernels on emulated GPUs: instructions that only some layouts and GPUs use."""

from __future__ import annotations

import numpy as np
import pytest

import cklang as ck
from cklang import emulator, knobs
from cklang.reference.bounds import evaluate_with_bound
from cklang.testing import assert_close
from tests.support.assembly import DEVICES

pytestmark = pytest.mark.usefixtures("compiler")

M, N, K = ck.dims("M N K")


@ck.op
def matmul(x: ck.f16[M, K], w: ck.f16[K, N]) -> ck.f16[M, N]:
    return x @ w


@ck.op
def matmul32(x: ck.f16[M, K], w: ck.f16[K, N]) -> ck.f32[M, N]:
    return x @ w


def test_row_major_b_on_gfx950_is_read_transposed() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(128, 96)).astype(np.float16)
    w = rng.normal(size=(96, 192)).astype(np.float16)
    got = matmul(x, w, device="emu:gfx950")
    (want,), (bound,) = evaluate_with_bound(matmul.ir(x, w), (x, w))
    assert_close(got, want, bound)
    assert emulator.fidelity(DEVICES.index("gfx950"))["ds_read_b64_tr_b16"] > 0


def test_a_gemm_passes_in_every_numerics() -> None:
    """Three ways of rounding, three different results, all within the reference's bound."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(128, 96)).astype(np.float16)
    w = rng.normal(size=(96, 192)).astype(np.float16)
    (want,), (bound,) = evaluate_with_bound(matmul32.ir(x, w), (x, w))
    results = {}
    try:
        for mode in ("fma", "exact", "cdna3"):
            emulator.numerics(mode)
            results[mode] = matmul32(x, w, device="emu:gfx942")
            assert_close(results[mode], want, bound)
    finally:
        emulator.numerics(knobs.NUMERICS.get())
    assert all((results["fma"] != results[mode]).any() for mode in ("exact", "cdna3"))
    assert (results["exact"] != results["cdna3"]).any()


@pytest.mark.parametrize("arch", DEVICES[:2])
def test_no_wait_and_no_barrier_is_missing(arch: str) -> None:
    """CK Tile's main loops keep many loads under way, and wait for each before its use."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(128, 96)).astype(np.float16)
    w = rng.normal(size=(96, 192)).astype(np.float16)
    (want,), (bound,) = evaluate_with_bound(matmul.ir(x, w), (x, w))
    emulator.sanitize("waits", "races")
    try:
        assert_close(matmul(x, w, device=f"emu:{arch}"), want, bound)
    finally:
        emulator.sanitize(*knobs.SANITIZE.get())
