# SPDX-License-Identifier: MIT
"""CK Tile kernels on emulated GPUs: instructions that only some layouts and GPUs use."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from ck_examples import EXAMPLES, build, run

import cklang as ck
from cklang import emulator, knobs
from tests.support.arrays import drawn, mnk
from tests.support.assembly import DEVICES
from tests.support.checks import check
from tests.support.ck_units import Attention, Unit, plain

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
    for mode in ("fma", "exact", "cdna3"):
        emulator.numerics(mode)
        results[mode] = check(matmul32, args)


@pytest.mark.parametrize("arch", DEVICES[:2])
def test_no_wait_and_no_barrier_is_missing(arch: str) -> None:
    """CK Tile's main loops keep many loads under way, and wait for each before its use."""
    args = drawn(matmul, SIZES)
    emulator.sanitize("waits", "races")
    try:
        check(matmul, args, arch)
    finally:
        emulator.sanitize(*knobs.SANITIZE.get())


# --- example programs, which check themselves

ARCH = "gfx942"
#: Each takes more than a minute of processor time, or is a convolution as the one that stays.
LONG = ("gemm_universal", "gemm_streamk", "conv_fwd", "conv_bwd_data")


CASES = [pytest.param(name, marks=pytest.mark.full) if name in LONG else name for name in EXAMPLES]


@pytest.mark.parametrize("name", CASES)
def test_example(name: str, tmp_path: Path) -> None:
    outcome = run(name, build(name, tmp_path, ARCH), ARCH)
    assert not outcome.failures, "\n".join(outcome.failures)


# --- attention and reductions, against NumPy


@pytest.mark.parametrize(
    ("arch", "element", "dtype"),
    [("gfx942", "half_t", np.float16), ("gfx950", "bf16_t", ml_dtypes.bfloat16)],
)
def test_attention(
    arch: str, element: str, dtype: type, tmp_path_factory: pytest.TempPathFactory
) -> None:
    unit = Attention(arch, tmp_path_factory.mktemp("attention"), element, masked=True)
    rng = np.random.default_rng(0)
    for causal, (batch, heads, length) in ((False, (2, 2, 128)), (True, (1, 2, 384))):
        q, k, v = rng.normal(size=(3, batch, heads, length, 128)).astype(dtype)
        o, log_sums = unit.run(q, k, v, causal=causal)
        wide_q, wide_k, wide_v = (part.astype(np.float64) for part in (q, k, v))
        score = wide_q @ wide_k.swapaxes(-1, -2) * 128**-0.5
        if causal:
            score = np.where(np.tri(length, dtype=bool), score, -np.inf)
        top = score.max(axis=-1, keepdims=True)
        share = np.exp(score - top)
        total = share.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(log_sums, (top + np.log(total))[..., 0], rtol=0, atol=1e-5)
        want, size = share / total @ wide_v, share / total @ abs(wide_v)
        # The shares are rounded to the element type, as the result is; CK Tile may truncate both.
        eps = float(ml_dtypes.finfo(dtype).eps)
        assert np.all(abs(o.astype(np.float64) - want) <= eps * (size + abs(want)) + 1e-6)
    assert emulator.fidelity(DEVICES.index(arch))["v_exp_f32"] > 0


def test_reductions(tmp_path_factory: pytest.TempPathFactory) -> None:
    unit = Unit("reduce", "gfx942", tmp_path_factory.mktemp("reduce"))
    rng = np.random.default_rng(1)
    x = rng.uniform(-5, 5, (6, 7, 5, 64)).astype(np.float16)
    sums = np.zeros((6, 64), np.float16)
    unit.launch("sum_of_images", plain(x, sums, *x.shape), (-(-sums.size // 128), 1, 1), 256)
    want = x.astype(np.float64).sum(axis=(1, 2))
    np.testing.assert_allclose(sums.astype(np.float64), want, rtol=2.0**-11, atol=1e-4)
    most = np.zeros(6, np.float16)
    unit.launch("largest", plain(x, most, *x.shape), (3, 1, 1), 256)
    np.testing.assert_array_equal(most, x.max(axis=(1, 2, 3)))
