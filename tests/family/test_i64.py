# SPDX-License-Identifier: MIT
"""Arithmetic of i64 and stored bools: kernels of rows against NumPy, on the emulated GPU."""

import numpy as np
import pytest
from numpy.typing import NDArray

import cklang as ck
from cklang.families import plan_of
from tests.support.checks import check

GPUS = ("gfx942", "gfx1201")
B, M, N = ck.dims("B M N")


@ck.op
def mixed(
    x: ck.i64[M, N], y: ck.i32[N], z: ck.f32[M, N]
) -> tuple[ck.i64[M, N], ck.bool_[M, N], ck.f32[M, N]]:
    a = x * 3 + y - (1 << 40)
    b = ck.where(x < y, a, x // 7) % 1000003
    return (b << 3) ^ (x >> 5), x > 5, z + x


def drawn(shape: tuple[int, ...]) -> NDArray[np.int64]:
    rng = np.random.default_rng(3)
    x = rng.integers(-(2**63), 2**63 - 1, shape, endpoint=True)
    return np.where(rng.random(shape) < 0.5, x, x >> rng.integers(0, 64, shape))


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("gpu", "is_transposed"), [*((gpu, False) for gpu in GPUS), (GPUS[0], True)]
)
def test_a_kernel_computes_i64_as_numpy_does(gpu: str, is_transposed: bool) -> None:
    x = drawn((9, 70) if not is_transposed else (70, 9))
    x = x.T if is_transposed else x
    rng = np.random.default_rng(4)
    y, z = rng.integers(-9, 9, 70).astype(np.int32), rng.normal(size=x.shape).astype(np.float32)
    got = check(mixed, (x, y, z), gpu)
    with np.errstate(over="ignore"):
        a = x * 3 + y - (1 << 40)
        b = np.where(x < y, a, x // 7) % 1000003
        want = (b << 3) ^ (x >> 5), x > 5, z + x.astype(np.float32)
    for result, expected in zip(got, want, strict=True):
        np.testing.assert_array_equal(result, expected)


@ck.op
def masked(x: ck.f32[M, N], ids: ck.i64[M, N]) -> tuple[ck.f32[M], ck.i64[M]]:
    """Two reductions need the same i64 of each element: a row keeps it in two words."""
    far = ids * 5 - 3
    top = ck.max(ck.where(far > (1 << 41), x, -1e9), axis=1)
    total = ck.sum(ck.where(far % 7 > 2, x - top[:, None], 0.0), axis=1)
    return total, ck.cast(total, ck.i64) * (1 << 33)


@pytest.mark.usefixtures("compiler")
def test_rows_keep_i64_between_reductions() -> None:
    rng = np.random.default_rng(5)
    x = rng.integers(-9, 9, (5, 200)).astype(np.float32)
    ids = rng.integers(-(2**42), 2**42, (5, 200))
    far = ids * 5 - 3
    top = np.where(far > (1 << 41), x, -1e9).max(axis=1)
    want = np.where(far % 7 > 2, x - top[:, None], 0.0).sum(axis=1)
    total, wide = check(masked, (x, ids))
    np.testing.assert_array_equal(total, want)
    np.testing.assert_array_equal(wide, want.astype(np.int64) * (1 << 33))


@ck.op
def losses(x: ck.f16[M, N], labels: ck.i64[M]) -> ck.f32[M]:
    is_used = labels != -100
    at = ck.where(is_used, labels, 0)[:, None]
    picked = ck.take_along_axis(x.T, at.T, axis=0)[0]
    return ck.where(is_used, ck.logsumexp(x, axis=1) - picked, 0.0)


@pytest.mark.usefixtures("compiler")
def test_a_loss_reads_the_logit_of_each_label() -> None:
    x = np.random.default_rng(7).normal(size=(6, 40)).astype(np.float16)
    check(losses, (x, np.array([3, -100, 39, 0, 7, -100])))


@ck.op
def labelled(a: ck.f16[M, 32], b: ck.f16[32, N], ids: ck.i64[M]) -> ck.f16[M, N]:
    c = a @ b
    return ck.where((ids != -100)[:, None], c, 0.0).to(ck.f16)


def test_a_product_reads_what_i64_gives_as_a_stored_bool() -> None:
    kernels = plan_of(labelled.program.specialise()).kernels
    assert [each.family for each in kernels] == ["rowwise", "gemm"]
    assert [str(value.type) for value in kernels[0].results] == ["bool[M]"]
