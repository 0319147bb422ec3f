# SPDX-License-Identifier: MIT
"""Gradients of gathers, scatters and running sums, where the op table has these ops."""

from typing import Any

import numpy as np
import pytest

from cklang.autodiff.transform import backward
from cklang.ir.builder import Builder
from cklang.ir.nodes import Function, Value
from cklang.ir.ops import OPS
from cklang.ir.verifier import verify
from cklang.reference.evaluate import evaluate
from cklang.types import DType, dims, f32, i32, i64

M, N, V = dims("M N V")
IDS = np.array([2, 0, 2, 3], "i")


def built(op: str, shapes: dict[str, Any], shape: Any, **attrs: Any) -> Function:
    builder = Builder("f")
    params: list[Value] = [builder.param(name, type_) for name, type_ in shapes.items()]
    return builder.finish(builder.append(op, *params, shape=shape, **attrs))


def linear(function: Function, arrays: list[Any], name: str) -> None:
    """Check <v, J u> = <J'v, u> for a parameter in which the function is linear."""
    (ju,) = evaluate(function, arrays)
    v = np.random.default_rng(3).standard_normal(ju.shape).astype("f")
    derived = verify(backward(function, [name], ["dy"], name="t"), allow_unused=True)
    (jv,) = evaluate(derived, [*arrays, v])
    u = arrays[[param.name for param in function.params].index(name)]
    left, right = (np.vdot(a.astype("d"), b.astype("d")) for a, b in ((v, ju), (jv, u)))
    np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-5)


needs_scatter = pytest.mark.skipif("scatter_add" not in OPS, reason="the op table has no scatter")


def rows(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype("f")


@needs_scatter
@pytest.mark.parametrize("dtype", [i32, i64], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_the_gradient_of_a_gather_is_a_scatter(axis: int, dtype: DType) -> None:
    function = built("take", {"x": f32[V, N], "ids": dtype[M]}, None, axis=axis)
    linear(function, [rows(5, 6), IDS.astype(dtype.numpy)], "x")


@needs_scatter
@pytest.mark.parametrize("axis", [0, 1])
def test_the_gradient_of_elements_at_indices_adds_to_them(axis: int) -> None:
    shape = ((3, 6), (4, 7))[axis]
    ids = np.random.default_rng(1).integers(0, (4, 6)[axis], shape)
    function = built("take_along", {"x": f32[4, 6], "ids": i64[shape]}, None, axis=axis)
    x = rows(4, 6)
    (got,) = evaluate(function, [x, ids])
    np.testing.assert_array_equal(got, np.take_along_axis(x, ids, axis))
    linear(function, [x, ids], "x")


@needs_scatter
@pytest.mark.parametrize("dtype", [i32, i64], ids=str)
@pytest.mark.parametrize("name", ["x", "base"])
def test_the_gradient_of_a_scatter_is_a_gather(name: str, dtype: DType) -> None:
    # An index outside of the axis adds nothing.
    ids = np.array([2, -1, 2, 9], dtype.numpy)
    types = {"ids": dtype[M], "x": f32[M, N], "base": f32[V, N]}
    function = built("scatter_add", types, (V, N), axis=0, in_place=0, unordered=0)
    arrays = [ids, rows(4, 6), np.zeros((5, 6), "f") if name == "x" else rows(5, 6)]
    if name == "base":
        arrays[1] = np.zeros((4, 6), "f")
    linear(function, arrays, name)


@pytest.mark.skipif("cumsum" not in OPS, reason="the op table has no cumsum")
@pytest.mark.parametrize("axis", [0, 1])
def test_the_gradient_of_a_running_sum_runs_back(axis: int) -> None:
    linear(built("cumsum", {"x": f32[M, N]}, None, axis=axis), [rows(4, 5)], "x")


def test_the_gradient_by_grouped_rows_is_a_grouped_product() -> None:
    types = {"x": f32[M, N], "w": f32[3, N, 5], "ends": i32[3]}
    function = built("grouped_gemm", types, None)
    arrays = [rows(7, 4), rows(3, 4, 5), np.array([2, 2, 6], "i")]
    linear(function, arrays, "x")
    linear(function, arrays, "w")


@pytest.mark.parametrize("name", ["x", "y"])
def test_the_gradient_by_groups_along_k_is_a_grouped_product(name: str) -> None:
    types = {"x": f32[M, N], "y": f32[N, 5], "ends": i32[3]}
    function = built("grouped_gemm_k", types, None)
    linear(function, [rows(7, 4), rows(4, 5), np.array([1, 1, 3], "i")], name)
