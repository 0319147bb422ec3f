# SPDX-License-Identifier: MIT
"""The gradient rule of each op beside torch's autograd in float64."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from cklang.autodiff.indices import INDICES
from cklang.autodiff.pointwise import POINTWISE
from cklang.autodiff.rules import ADVICE, RULES, WITHOUT_FLOATS
from cklang.autodiff.transform import backward
from cklang.ir.builder import Builder
from cklang.ir.nodes import Attr, Function, Value
from cklang.ir.ops import OPS
from cklang.ir.verifier import verify
from cklang.reference.bounds import evaluate_with_bound
from cklang.reference.evaluate import evaluate
from cklang.types import bool_, dims, f32, i32
from tests.support.torch_ir import TORCH, gradients

pytestmark = pytest.mark.usefixtures("torch")

M, N, K, B = dims("M N K B")
EXTENTS = {"M": 4, "N": 5, "K": 6, "B": 3}
GRID = np.array([-4, -3, -2.5, -1, -0.5, 0, 0.25, 0.5, 1, 2, 3, 3.5], "f")
"""Where functions have kinks, and elsewhere; drawn from so few numbers, operands tie."""
POSITIVE = {"log", "log2", "sqrt", "rsqrt", "pow", "reciprocal", "div", "mod", "floor_divide"}


def drawn(function: Function, seed: int = 0, *, positive: bool = False) -> list[Any]:
    rng = np.random.default_rng(seed)
    numbers = GRID[GRID > 0] if positive else GRID
    arrays = []
    for param in function.params:
        array = rng.choice(numbers, param.type.extents(EXTENTS))
        arrays.append((array > 0) if param.type.dtype == bool_ else array)
    return arrays


def expect_torch(
    function: Function, arrays: Sequence[Any], wrt: Sequence[str], *, tolerance: float = 2e-6
) -> None:
    """Compare the gradients of a function of one result with torch's, and look at their bounds."""
    result = evaluate(function, arrays)[0]
    dy = np.random.default_rng(7).standard_normal(result.shape).astype("f")
    derived = verify(backward(function, wrt, ["dy"], name="f_vjp"), allow_unused=True)
    got, bounds = evaluate_with_bound(derived, [*arrays, dy])
    want = gradients(function, arrays, wrt, [dy])
    for name, mine, bound, theirs in zip(wrt, got, bounds, want, strict=True):
        scale = np.max(np.abs(theirs), initial=1.0, where=np.isfinite(theirs))
        np.testing.assert_allclose(
            mine, theirs, rtol=tolerance, atol=tolerance * scale, err_msg=name
        )
        assert bound.shape == theirs.shape


def test_every_op_has_a_rule_or_a_reason() -> None:
    tables = [set(RULES), set(ADVICE), set(WITHOUT_FLOATS)]
    missing = set(OPS) - set().union(*tables)
    assert not missing, "add a rule, or a line of _ADVICE or _NUMBERS in cklang/autodiff/rules.py"
    assert sum(map(len, tables)) == len(OPS)


def pointwise(op: str) -> Function:
    builder, row = Builder("f"), OPS[op]
    kinds = (bool_, f32, f32) if op == "where" else (f32,) * row.operands
    params = [builder.param("xyz"[at], kind[M, N]) for at, kind in enumerate(kinds)]
    numbers: dict[str, Attr] = {"lo": -1.0, "hi": 2.0, "slope": 0.25, "alpha": 1.5}
    attrs = {attr.name: numbers[attr.name] for attr in row.attrs}
    return builder.finish(builder.apply(op, params, attrs))


@pytest.mark.parametrize("op", sorted(POINTWISE))
def test_a_pointwise_rule_follows_torch(op: str) -> None:
    function = pointwise(op)
    wrt = [param.name for param in function.params if param.type.dtype == f32]
    if op == "floor_divide":  # torch has no gradient of it; where it has one, it is zero
        wrt = []
    arrays = drawn(function, positive=op in POSITIVE or op == "log1p")
    expect_torch(function, arrays, wrt)


def test_a_power_of_zero_follows_torch() -> None:
    function = pointwise("pow")
    x = np.zeros((4, 5), "f")
    y = np.tile(np.array([0, 1, 2, 0.5, 3], "f"), (4, 1))
    expect_torch(function, [x, y], ["y"])
    expect_torch(function, [x, np.full((4, 5), 2, "f")], ["x", "y"])


def one(op: str, operand: Any, shape: Any = None, **attrs: Any) -> Function:
    builder = Builder("f")
    value = builder.append(op, builder.param("x", operand), shape=shape, **attrs)
    return builder.finish(value)


AXES = [(0,), (1,), (2,), (0, 2), (0, 1, 2)]


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("op", ["sum", "mean", "max", "min", "prod"])
def test_a_reduction_follows_torch(op: str, axes: tuple[int, ...]) -> None:
    function = one(f"reduce_{op}", f32[M, N, 3], axes=axes)
    expect_torch(function, drawn(function), ["x"])


@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_a_product_of_zeros_follows_torch(zeros: int) -> None:
    function = one("reduce_prod", f32[M, N], axes=(1,))
    x = np.arange(1, 21, dtype="f").reshape(4, 5) / 4
    x[:, :zeros] = 0
    expect_torch(function, [x], ["x"])


STRUCTURES = {
    "transpose": one("transpose", f32[M, N, K], perm=(2, 0, 1)),
    "broadcast in front": one("broadcast", f32[N], shape=(3, N), dims=(1,)),
    "broadcast behind": one("broadcast", f32[M], shape=(M, 3), dims=(0,)),
    "broadcast of one": one("broadcast", f32[M, 1], shape=(2, M, 3), dims=(1, 2)),
    "broadcast of a number": one("broadcast", f32[()], shape=(3, 4), dims=()),
    "broadcast with an axis of one": one("broadcast", f32[M, 1], shape=(M, 1, 1), dims=(0, 1)),
    "reshape": one("reshape", f32[M, N, 2], shape=(M * N, 2)),
    "slice": one(
        "slice", f32[M, N], shape=(2, N - 1), axes=(0, 1), start=(1, 0), stop=(3, "N - 1"),
        step=(1, 1),
    ),
    "slice of a half": one(
        "slice", f32[M, K], shape=(M, K - K // 2), axes=(0, 1), start=(0, "K//2"), stop=("M", "K"),
        step=(1, 1),
    ),
    "slice of one": one(
        "slice", f32[M, N], shape=(M,), axes=(0,), start=(0, 2), stop=("M", 3), step=(1, 1)
    ),
    "slice with a step": one(
        "slice", f32[M, N], shape=(M, 2), axes=(0, 1), start=(0, 1), stop=("M", "N"), step=(1, 2)
    ),
    "cast": one("cast", f32[M, N], to=f32),
}  # fmt: skip


@pytest.mark.parametrize("name", STRUCTURES)
def test_what_moves_elements_follows_torch(name: str) -> None:
    function = STRUCTURES[name]
    expect_torch(function, drawn(function), ["x"])


@pytest.mark.parametrize("name", STRUCTURES)
def test_what_moves_elements_has_its_transpose_as_gradient(name: str) -> None:
    """<v, J u> = <J'v, u>, without torch: J is the op itself."""
    expect_transpose(STRUCTURES[name], drawn(STRUCTURES[name]), 0)


def expect_transpose(function: Function, arrays: Sequence[Any], place: int) -> None:
    """Check the gradient by a parameter in which a function is linear."""
    (ju,) = evaluate(function, arrays)
    v = np.random.default_rng(3).standard_normal(ju.shape).astype("f")
    name = function.params[place].name
    (jv,) = evaluate(backward(function, [name], ["v"], name="t"), [*arrays, v])
    left, right = (np.vdot(a.astype("d"), b.astype("d")) for a, b in ((v, ju), (jv, arrays[place])))
    np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-5)


def joined(op: str, axis: int) -> Function:
    builder = Builder("f")
    other = f32[M, 3] if op == "concat" else f32[M, N]
    parts = [builder.param("x", f32[M, N]), builder.param("y", other)]
    shapes: dict[tuple[str, int], Any] = {
        ("concat", 1): (M, N + 3),
        ("stack", 0): (2, M, N),
        ("stack", 2): (M, N, 2),
    }
    return builder.finish(builder.append(op, *parts, shape=shapes[op, axis], axis=axis))


@pytest.mark.parametrize(("op", "axis"), [("concat", 1), ("stack", 0), ("stack", 2)])
def test_a_join_follows_torch(op: str, axis: int) -> None:
    function = joined(op, axis)
    expect_torch(function, drawn(function), ["x", "y"])


def two(op: str, a: Any, b: Any, shape: Any = None, **attrs: Any) -> Function:
    builder = Builder("f")
    params = [builder.param("a", a), builder.param("b", b)]
    return builder.finish(builder.append(op, *params, shape=shape, **attrs))


def contract(a: Any, b: Any, rows: int, columns: int, summed: int) -> Function:
    return two("contract", a, b, rows=rows, columns=columns, summed=summed)


PRODUCTS = {
    "matrices": two("gemm", f32[M, K], f32[K, N]),
    "a batch of both": two("gemm", f32[B, M, K], f32[B, K, N]),
    "a batch of the left": two("gemm", f32[B, M, K], f32[K, N]),
    "a batch of the right": two("gemm", f32[M, K], f32[B, K, N]),
    "two axes of batch": two("gemm", f32[2, B, M, K], f32[B, K, N]),
    "a batch of one": two("gemm", f32[2, B, M, K], f32[2, 1, K, N]),
    "batches that are crossed": two("gemm", f32[2, 1, M, K], f32[1, B, K, N]),
    "a matrix and a vector": contract(f32[M, K], f32[K], 1, 0, 1),
    "vectors": contract(f32[K], f32[K], 0, 0, 1),
    "a batch of vectors": contract(f32[B, K], f32[B, K, N], 0, 1, 1),
    "two axes summed": contract(f32[M, K, 2], f32[K, 2, N], 1, 1, 2),
    "two axes summed in a batch": contract(f32[B, M, K, 2], f32[K, 2, N], 1, 1, 2),
    "an outer product": contract(f32[M], f32[N], 1, 1, 0),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_follows_torch(name: str) -> None:
    function = PRODUCTS[name]
    expect_torch(function, drawn(function), ["a", "b"])


GEOMETRIES: dict[str, tuple[Any, Any, Any, dict[str, Any]]] = {
    "plain": ((2, 6, 7, 4), (3, 3, 2, 4), (2, 4, 6, 3), {}),
    "stride": ((2, 7, 8, 4), (3, 3, 3, 4), (2, 3, 2, 3), {"stride": (2, 3)}),
    "padding": ((1, 5, 5, 2), (4, 3, 3, 2), (1, 6, 5, 4), {"padding": ((1, 2), (1, 1))}),
    "dilation": ((1, 7, 6, 2), (2, 3, 2, 2), (1, 3, 4, 2), {"dilation": (2, 2)}),
    "groups": ((2, 5, 5, 4), (6, 3, 3, 2), (2, 3, 3, 6), {"groups": 2}),
}


def convolution(name: str) -> Function:
    x, w, y, more = GEOMETRIES[name]
    attrs = {"stride": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1), "groups": 1} | more
    return two("conv", f32[x], f32[w], shape=y, **attrs)


@pytest.mark.parametrize("name", GEOMETRIES)
def test_a_convolution_follows_torch(name: str) -> None:
    function = convolution(name)
    expect_torch(function, drawn(function), ["a", "b"])


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("op", ["conv_grad_input", "conv_grad_weight"])
def test_gradients_of_convolutions_have_gradients(op: str, place: int) -> None:
    x, w, y, more = GEOMETRIES["stride"]
    attrs = {"padding": ((0, 0), (0, 0)), "dilation": (1, 1), "groups": 1, **more}
    shapes: dict[str, Any] = {"conv_grad_input": (y, w, x), "conv_grad_weight": (x, y, w)}
    a, b, result = shapes[op]
    function = two(op, f32[a], f32[b], shape=result, **attrs)
    expect_transpose(function, drawn(function), place)


def test_the_torch_table_has_the_ops_with_rules() -> None:
    others = {"conv_grad_input", "conv_grad_weight"}
    missing = set(RULES) - set(TORCH) - set(INDICES) - others
    assert not missing, "add torch's function to TORCH in tests/support/torch_ir.py"


def test_casts_to_integers_stop_gradients() -> None:
    builder = Builder("f")
    x = builder.param("x", f32[M, N])
    whole = builder.cast(builder.cast(x, i32), f32)
    function = builder.finish(builder.append("mul", whole, x))
    expect_torch(function, drawn(function), ["x"])


def test_an_unused_parameter_has_the_gradient_zero() -> None:
    builder = Builder("f")
    x: Value = builder.param("x", f32[M, N])
    builder.param("unused", f32[N])
    function = builder.finish(builder.append("exp", x))
    expect_torch(function, drawn(function), ["x", "unused"])
