# SPDX-License-Identifier: MIT
"""Quantised products whose scales are factors of the whole sum: they are epilogue operands."""

from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.families.gemm.key import DKind
from cklang.families.gemm.problem import Problem
from cklang.types import DTYPES
from tests.support.checks import check
from tests.support.coverage import Covered
from tests.support.typed import only

pytestmark = pytest.mark.usefixtures("stencils")

M, N, K = ck.dims("M N K")
Q: Any = ck.dtype_var("Q", ck.fp8, ck.fp8_fnuz)


@ck.op
def row_column(x: Q[M, K], w: Q[N, K], scale_x: ck.f32[M], scale_w: ck.f32[N]) -> ck.bf16[M, N]:
    return (x @ w.T) * scale_x[:, None] * scale_w


def quantised(rng: np.random.Generator, dtype: str, *shape: int) -> tuple[Any, Any]:
    """Return a matrix in 8 bits and the scale of each of its rows."""
    x = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4, (shape[0], 1))
    scale = np.abs(x).max(axis=1, keepdims=True) / 200
    return (x / scale).astype(DTYPES[dtype].numpy), scale[:, 0].astype(np.float32)


@pytest.mark.parametrize(
    ("arch", "dtype"),
    [("gfx942", "fp8_fnuz"), pytest.param("gfx950", "fp8", marks=pytest.mark.full)],
)
def test_scales_of_rows_and_columns(arch: str, dtype: str, covered: Covered) -> None:
    rng = np.random.default_rng(0)
    for m, n, k in ((64, 64, 128), (80, 48, 208)):
        x, scale_x = quantised(rng, dtype, m, k)
        w, scale_w = quantised(rng, dtype, n, k)
        args = (x, w, scale_x, scale_w)
        got = check(row_column, args, arch)
        # A scale that is nan or infinite stays in its row.
        scale_x[0], scale_x[1] = np.nan, np.inf
        wild = check(row_column, args, arch)
        np.testing.assert_array_equal(wild[2:], got[2:])
    covered("quantised, row and column scales", f"{dtype} {dtype} bf16", arch)


@ck.op
def tensor_wise(
    x: Q[M, K], w: Q[N, K], scale_x: ck.f32, scale_w: ck.f32, bias: ck.bf16[N]
) -> ck.bf16[M, N]:
    return (x @ w.T) * (scale_x * scale_w) + bias


@ck.op
def tensor_wise_int8(
    x: ck.i8[M, K], w: ck.i8[N, K], scale_x: ck.f32, scale_w: ck.f32, scale_y: ck.f32
) -> ck.i8[M, N]:
    return ck.round((x @ w.T) * (scale_x * scale_w / scale_y)).to(ck.i8)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("arch", "dtype"),
    [pytest.param("gfx942", "fp8_fnuz", marks=pytest.mark.full), ("gfx950", "fp8")],
)
def test_one_scale_a_tensor(arch: str, dtype: str, covered: Covered) -> None:
    rng = np.random.default_rng(1)
    for m, n, k in ((64, 64, 128), (80, 48, 208)):
        x, w = (rng.standard_normal(s).astype(DTYPES[dtype].numpy) for s in ((m, k), (n, k)))
        bias = rng.standard_normal(n).astype(DTYPES["bf16"].numpy)
        args = (x, w, 0.03, -1.5, bias)
        with ck.using(arch=arch):
            problem = only(Problem, tensor_wise.problems(*args))
        assert [d.kind for d in problem.d].count(DKind.SCALAR) == 2
        check(tensor_wise, args, arch)
    covered("quantised, tensor-wise scales", f"{dtype} {dtype} bf16", arch)


@pytest.mark.usefixtures("compiler")
def test_one_scale_a_tensor_of_integers(covered: Covered) -> None:
    rng = np.random.default_rng(2)
    for m, n, k in ((64, 64, 128), (80, 48, 208)):
        x, w = (rng.integers(-127, 128, s).astype(np.int8) for s in ((m, k), (n, k)))
        args = (x, w, 0.01, 0.02, 0.4)
        got = check(tensor_wise_int8, args)
        assert len(np.unique(got)) > 50  # the scales spread the results, few of them saturate
    covered("quantised, tensor-wise scales", "i8", "gfx942")
