# SPDX-License-Identifier: MIT
"""CK Tile's kernels that quantise rows, and those of windows: results, and what rules refuse."""

from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkUnsupportedError
from cklang.runtime.op import Op
from tests.support.arrays import drawn
from tests.support.checks import check, launches
from tests.support.coverage import Covered
from tests.support.errors import expect_error

H, M, K, W, C = ck.dims("H M K W C")

WIDE = ck.dispatch.CkTileRows(threads=256, vector=8, repeats=2)
WAVE = ck.dispatch.CkTileRows(threads=64, vector=8, repeats=2)
ONE = ck.dispatch.CkTileRows(threads=256, vector=1)


@ck.op
def smooth(x: ck.f16[M, K], s: ck.f32[K]) -> tuple[ck.fp8_fnuz[M, K], ck.f32[M]]:
    y = x * s
    scale = ck.max(ck.abs(y), axis=-1) / 240.0
    return y / scale[:, None], scale


@ck.op
def smooth_integers(x: ck.bf16[M, K], s: ck.f32[K]) -> tuple[ck.f32[M, 1], ck.i8[M, K]]:
    y = x * s
    scale = ck.max(ck.abs(y), axis=-1, keepdims=True) / 127.0
    return scale, (y / scale).to(ck.i8)


@ck.op
def added_norm(
    x: ck.f16[M, K], residual: ck.f16[M, K], gain: ck.f16[K]
) -> tuple[ck.f16[M, K], ck.fp8_fnuz[M, K], ck.f32[M, 1]]:
    h = x + residual
    y = ck.rms_norm(h, gain, eps=1e-5)
    scale = ck.max(ck.abs(y), axis=-1, keepdims=True) / 240.0
    return h, y / scale, scale


@ck.op
def smooth_halves(x: ck.f16[M, K], s: ck.f32[K]) -> tuple[ck.i8[M, K], ck.f32[M]]:
    y = x * s
    scale = ck.max(ck.abs(y), axis=-1) / 127.0
    return (y / scale[:, None]).to(ck.i8), scale


@ck.op
def added_norm_to_integers(
    x: ck.f16[M, K], residual: ck.f16[M, K], gain: ck.f16[K]
) -> tuple[ck.f16[M, K], ck.i8[M, K], ck.f32[M, 1]]:
    h = x + residual
    y = ck.rms_norm(h, gain, eps=1e-5)
    scale = ck.max(ck.abs(y), axis=-1, keepdims=True) / 127.0
    return h, (y / scale).to(ck.i8), scale


@ck.op
def other_divisor(x: ck.f16[M, K], s: ck.f32[K]) -> tuple[ck.fp8_fnuz[M, K], ck.f32[M]]:
    y = x * s
    scale = ck.max(ck.abs(y), axis=-1) / 448.0
    return y / scale[:, None], scale


@ck.op
def narrow_scales(x: ck.f16[M, K], s: ck.f16[K]) -> tuple[ck.fp8_fnuz[M, K], ck.f32[M]]:
    y = x * s
    scale = ck.max(ck.abs(y), axis=-1) / 240.0
    return y / scale[:, None], scale


@ck.op
def wide_gain(x: ck.f16[M, K], gain: ck.f32[K]) -> ck.f16[M, K]:
    return ck.rms_norm(x, gain, eps=1e-5)


@ck.op
def pooled(x: ck.f16[H, W, C]) -> ck.f16[H / 2, W / 2, C]:
    return ck.max(x.reshape(H // 2, 2, W // 2, 2, C), axis=(1, 3))


@ck.op
def summed(x: ck.f16[H, W, C]) -> ck.f32[H / 2, W / 3, C]:
    return ck.sum(x.reshape(H // 2, 2, W // 3, 3, C), axis=(1, 3))


@ck.op
def patches(x: ck.f16[M, H, W, C]) -> ck.f16[M, H / 4, W / 4, 4, 4, C]:
    return x.reshape(M, H // 4, 4, W // 4, 4, C).transpose(0, 1, 3, 2, 4, 5)


Shapes = tuple[dict[str, int], ...]
WINDOWS: list[tuple[Op, ck.dispatch.CkTileRows, Shapes, str]] = [
    (pooled, ONE, ({"H": 12, "W": 10, "C": 24}, {"H": 4, "W": 8, "C": 3}), "pool_max"),
    (summed, ONE, ({"H": 12, "W": 9, "C": 25}, {"H": 6, "W": 6, "C": 100}), "pool_sum"),
    (
        patches,
        ck.dispatch.CkTileRows(threads=256, vector=4),
        ({"M": 2, "H": 8, "W": 12, "C": 5}, {"M": 3, "H": 16, "W": 32, "C": 3}),
        "image_to_column",
    ),
]
LONG: Shapes = ({"M": 5, "K": 4096}, {"M": 1, "K": 8}, {"M": 3, "K": 2056})
SHORT: Shapes = ({"M": 5, "K": 1024}, {"M": 1, "K": 8}, {"M": 3, "K": 520})
KERNELS = [
    (smooth, WIDE, LONG, "smoothquant"),
    (smooth_integers, WIDE, LONG[::2], "smoothquant"),
    (added_norm, WAVE, SHORT, "add_rmsnorm2d_rdquant"),
    *WINDOWS,
]
ELSEWHERE = [
    (smooth_halves, WIDE, LONG, "smoothquant"),
    (smooth_integers, WIDE, LONG[::2], "smoothquant"),
    (added_norm_to_integers, WAVE, SHORT, "add_rmsnorm2d_rdquant"),
    *WINDOWS,
]
"""Kernels for GPUs without fp8, or with that of OCP."""


def name_of(value: object) -> str:
    return value.program.name if isinstance(value, Op) else value if isinstance(value, str) else ""


def check_kernel(
    op: Op,
    algorithm: ck.dispatch.CkTileRows,
    shapes: Shapes,
    kernel: str,
    gpu: str,
    covered: Covered,
) -> None:
    """Check a kernel of CK Tile's on a GPU, also beside ours, and record it."""
    theirs = op.using(algorithm)
    for sizes in shapes:
        args = drawn(op, sizes)
        # What rounds an inexact value jumps, so quantised elements have no bound.
        results = check(theirs, args, gpu, unchecked=1.0)
        ours = op(*args, device=f"emu:{gpu}")
        pairs = zip(_tuple(results), _tuple(ours), strict=True)
        different = [_share(*pair) for pair in pairs]
        assert max(different) < 0.001
    theirs(*args, device=f"emu:{gpu}")
    (launch,) = launches(theirs)
    signature: Any = launch.key.signature
    assert signature.kernel.value == kernel
    assert launch.resources.spills == 0
    covered(f"CK Tile's own {kernel}", str(signature.dtype), gpu)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("op", "algorithm", "shapes", "kernel"), KERNELS, ids=name_of)
def test_the_kernels(
    op: Op, algorithm: ck.dispatch.CkTileRows, shapes: Shapes, kernel: str, covered: Covered
) -> None:
    check_kernel(op, algorithm, shapes, kernel, "gfx942", covered)


def _tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def _share(one: Any, other: Any) -> float:
    """Return how many elements of two results are more than 1 % apart."""
    a, b = (np.asarray(each).astype(np.float64) for each in (one, other))
    return float(np.mean(np.abs(a - b) > 0.01 * np.abs(b) + 1e-6))


@pytest.mark.usefixtures("compiler")
@pytest.mark.full
@pytest.mark.parametrize("gpu", ["gfx90a", "gfx950"])
@pytest.mark.parametrize(("op", "algorithm", "shapes", "kernel"), ELSEWHERE, ids=name_of)
def test_other_gpus(
    op: Op,
    algorithm: ck.dispatch.CkTileRows,
    shapes: Shapes,
    kernel: str,
    gpu: str,
    covered: Covered,
) -> None:
    check_kernel(op, algorithm, shapes, kernel, gpu, covered)


@pytest.mark.usefixtures("compiler")
@pytest.mark.full
def test_rows_that_are_read_again() -> None:
    again = ck.dispatch.CkTileRows(threads=64, vector=8, two_pass=True)
    check(smooth.using(again), drawn(smooth, {"M": 3, "K": 4104}), unchecked=1.0)


@pytest.mark.usefixtures("compiler")
def test_the_largest_of_a_row_skips_nan() -> None:
    """CK Tile's kernel has v_max3_f32, which returns numbers; ours returns nan, as NumPy does."""
    x, s = np.ones((2, 64), np.float16), np.full(64, 2, np.float32)
    x[0, 3], x[0, 5], x[1, 7] = np.nan, 30, 15
    _, theirs = smooth.using(WIDE)(x, s, device="emu:gfx942")
    _, ours = smooth(x, s, device="emu:gfx942")
    np.testing.assert_array_equal(theirs, np.array([60, 30], np.float32) / np.float32(240))
    np.testing.assert_array_equal(ours, [np.nan, np.float32(30) / np.float32(240)])


@pytest.mark.parametrize(
    ("op", "algorithm", "sizes", "rule"),
    [
        (added_norm, WIDE, {"M": 2, "K": 1024}, "ck-rows-waves"),
        (added_norm, WAVE, {"M": 2, "K": 4096}, "ck-rows-length"),
        (other_divisor, WIDE, {"M": 2, "K": 64}, "ck-rows-most"),
        (narrow_scales, WIDE, {"M": 2, "K": 64}, "ck-rows-operands"),
        (wide_gain, WIDE, {"M": 2, "K": 64}, "ck-rows-operands"),
        (pooled, WIDE, {"H": 4, "W": 4, "C": 8}, "ck-rows-vector"),
        (
            patches,
            ck.dispatch.CkTileRows(vector=8),
            {"M": 2, "H": 8, "W": 8, "C": 3},
            "ck-rows-access",
        ),
        (
            added_norm,
            ck.dispatch.CkTileRows(threads=64, two_pass=True),
            {"M": 2, "K": 64},
            "ck-rows-repeats",
        ),
    ],
)
def test_a_rule_says_what_does_not_fit(
    op: Op, algorithm: ck.dispatch.CkTileRows, sizes: dict[str, int], rule: str
) -> None:
    with expect_error("K101", match=rule, kind=CkUnsupportedError):
        op.using(algorithm).explain(*drawn(op, sizes), device="emu:gfx942")


def test_other_strides_and_gpus() -> None:
    x, s = drawn(smooth, {"M": 4, "K": 64})
    with pytest.raises(CkUnsupportedError, match="ck-rows-types"):
        smooth.using(WIDE).explain(x, s, device="emu:gfx950")
    with pytest.raises(CkUnsupportedError, match="ck-rows-windows"):
        pooled.using(ONE).explain(
            np.zeros((8, 6, 4), np.float16).transpose(2, 1, 0), device="emu:gfx942"
        )
    wide = np.zeros((4, 128), np.float16)[:, :64]
    with pytest.raises(CkUnsupportedError, match="ck-rows-one-stride"):
        added_norm.using(WAVE).explain(
            wide, np.zeros((4, 64), np.float16), np.ones(64, np.float16), device="emu:gfx942"
        )
