# SPDX-License-Identifier: MIT
"""The C of every pointwise op, compiled for this machine's CPU, against its NumPy meaning."""

import ctypes

import numpy as np
import pytest
from numpy.typing import NDArray

from cklang.errors import CkUnsupportedError
from cklang.ir.nodes import Function, Operation, Value, make_attrs
from cklang.ir.ops import OPS, Kind
from cklang.ir.parser import parse
from cklang.ir.rules import AttrKind
from cklang.lowering.pointwise import _literal, c_functions
from cklang.source import Source, Span
from cklang.types import TensorType, bool_, f32, i32
from tests.support.errors import expect_error
from tests.support.host_library import call_loop, host_library, loop

ATTRS = {"lo": -0.75, "hi": 1.5, "slope": 0.1, "alpha": 0.7}

_PREDICATES = {"lt", "le", "gt", "ge", "eq", "ne", "isnan"}
_LOGICAL = {"logical_and", "logical_or", "logical_xor", "logical_not"}
# They jump between integers: tests/lowering/test_integers.py compares them exactly.
_JUMPS = {"floor_divide", "mod"}

FLOAT_OPS = sorted(
    name
    for name, op in OPS.items()
    if op.kind is Kind.POINTWISE and op.c and name not in {*_LOGICAL, *_JUMPS, "where"}
)


def region(name: str) -> Function:
    """A region that applies one op to its parameters; a predicate is turned into 0 or 1."""
    op = OPS[name]
    scalar = TensorType(dtype=f32)
    params = tuple(Value(name=p, type=scalar) for p in ("acc", "d0", "d1")[: op.operands])
    predicate = name in _PREDICATES
    out = Value(name="0", type=TensorType(dtype=bool_ if predicate else f32))
    attrs = make_attrs(**{a.name: ATTRS[a.name] for a in op.attrs if a.kind is AttrKind.FLOAT})
    body = [Operation(op=name, operands=params, attrs=attrs, result=out)]
    if predicate:
        one = Value(name="1", type=scalar)
        body.append(Operation(op="cast", operands=(out,), attrs=make_attrs(to=f32), result=one))
    return Function(name="epilogue", params=params, body=tuple(body), results=(body[-1].result,))


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    lines: list[str] = []
    for name in FLOAT_OPS:
        count = OPS[name].operands
        lines.append(c_functions({f"op_{name}": region(name)}))
        values = ", ".join(f"x{i}" for i in range(count))
        lines.append(loop(name, f"op_{name}({values})", "float", count))
    return host_library(lines)


def inputs(count: int) -> list[NDArray[np.float32]]:
    rng = np.random.default_rng(11)
    special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3.0, 0.5], np.float32)
    mesh = np.meshgrid(*[special] * count)
    return [np.concatenate([m.ravel(), rng.normal(0, 2, 5000).astype(np.float32)]) for m in mesh]


@pytest.mark.parametrize("name", FLOAT_OPS)
def test_c_means_what_numpy_means(library: ctypes.CDLL, name: str) -> None:
    op = OPS[name]
    arrays = inputs(op.operands)
    got = call_loop(library, name, *arrays)
    attrs = {a.name: float(np.float32(ATTRS[a.name])) for a in op.attrs}
    with np.errstate(all="ignore"):
        wide = [x.astype(np.float64) for x in arrays]
        want = np.asarray(op.numpy(*wide, **attrs), np.float64)
        scale = np.abs(op.scale(*wide, **attrs) if op.scale else want)
    finite = np.isfinite(want)
    same = (got == want.astype(np.float32)) | (np.isnan(got) & np.isnan(want))
    assert np.all(same[~finite]), (arrays[0][~finite & ~same], got[~finite & ~same])
    error = np.abs(got[finite] - want[finite])
    bound = op.ulps * 2.0**-24 * scale[finite] + 2.0**-126
    if op.ulps == 0:
        bound = 2.0**-24 * np.abs(want[finite])
    worst = np.argmax(error - bound)
    where = [x[finite][worst] for x in arrays]
    assert np.all(error <= bound), (where, got[finite][worst], want[finite][worst])


def test_statements_carry_the_users_lines() -> None:
    source = Source(name='dir/"odd".py', text="a\nb\nc\n", first_line=40)
    span = Span(source=source, line=41, column=0, end_line=41, end_column=1)
    function = region("exp")
    (operation,) = function.body
    placed = Operation(op="exp", operands=operation.operands, result=operation.result, span=span)
    function_with_span = Function(
        name="e", params=function.params, body=(placed,), results=function.results
    )
    text = c_functions({"f": function_with_span}, ["return ck.exp(x @ w)"])
    assert '#line 41 "dir/\\"odd\\".py"\n    const float v0 = ck_exp(acc);' in text
    assert "// return ck.exp(x @ w)\nCK_FUNCTION float f(float acc)\n" in text


def test_constants_integers_and_selection() -> None:
    module = parse(
        """
func @epilogue(%acc: f32[], %d0: i32[], %d1: bool[]) -> f32[] {
  %0: i32[] = constant() {value = -3}
  %1: i32[] = add(%d0, %0)
  %2: f32[] = cast(%1) {to = f32}
  %3: f32[] = where(%d1, %acc, %2)
  %4: f32[] = constant() {value = -0.5}
  %5: f32[] = mul(%3, %4)
  return %5
}
"""
    )
    text = c_functions({"ck_epilogue": module.functions[0]})
    assert "float ck_epilogue(float acc, int d0, bool d1)" in text
    assert "const int v0 = (-2 - 1);" in text
    assert "const int v1 = (int)((unsigned)d0 + (unsigned)v0);" in text
    assert "const float v3 = d1 ? acc : v2;" in text
    assert "const float v4 = (-0.5f);" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1f"),
        (-0.0, "(-0.0f)"),
        (1e30, "1.0e+30f"),
        (1e-7, "1.0e-07f"),
        (3.0, "3.0f"),
        (float("inf"), "__builtin_inff()"),
        (float("-inf"), "(-__builtin_inff())"),
        (float("nan"), '__builtin_nanf("")'),
    ],
)
def test_float_literals(value: float, text: str) -> None:
    assert _literal(value, f32) == text


def test_int_literal_of_the_least_int() -> None:
    assert _literal(-(2**31), i32) == "(-2147483647 - 1)"


def test_an_anchor_has_no_c() -> None:
    function = region("add")
    (add,) = function.body
    gemm = Operation(op="gemm", operands=add.operands, result=add.result)
    bad = Function(name="e", params=function.params, body=(gemm,), results=function.results)
    with expect_error("L001", kind=CkUnsupportedError):
        c_functions({"f": bad})
