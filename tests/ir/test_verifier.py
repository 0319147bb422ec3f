# SPDX-License-Identifier: MIT
"""The verifier finds each kind of violation, all of them at once, and nothing in sound programs."""

from dataclasses import replace

import pytest
from hypothesis import given

from cklang.ir import infer, verifier
from cklang.ir.nodes import Function, Module, Operation, Value, make_attrs
from cklang.ir.ops import OPS, AttrRow
from cklang.ir.ops import Kind as OpKind
from cklang.ir.parser import parse, parse_function
from cklang.ir.rules import AttrKind
from cklang.ir.verifier import verify, verify_module, violations
from cklang.types import Dim, TensorType, f32
from tests.support.errors import expect_error
from tests.support.programs import gemm_functions, programs


def checked(line: str, result: str = "f32[M, N]") -> list[str]:
    """The codes found in a function with ``line`` in it, whose %r is returned."""
    text = f"""func @f(%x: f32[M, N], %h: f16[M, N], %v: f32[N], %i: i32[M, N], %c: bool[M, N])
      -> {result} {{
        {line}
        return %r
      }}"""
    return [violation.code for violation in violations(parse_function(text))]


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        ("%r: f32[M, N] = add(%x, %x)", []),
        ("%r: f32[M, N] = ad(%x, %x)", ["I013"]),
        ("%r: f32[M, N] = add(%x)", ["I014"]),
        ("%r: f32[M, N] = relu(%x) {slope = 0.1}", ["I015"]),
        ("%r: f32[M, N] = leaky_relu(%x)", ["I016"]),
        ("%r: f32[M, N] = clamp(%x) {low = 0.0}", ["I015", "I016", "I016"]),
        ("%r: f32[M, N] = leaky_relu(%x) {slope = 1}", ["I017"]),
        ("%r: f32[M, N] = add(%x, %h)", ["I018"]),
        ("%r: f32[M, N] = where(%x, %x, %x)", ["I018"]),
        ("%r: f32[M, N] = exp(%i)", ["I018"]),
        ("%r: f32[M, N] = gemm(%x, %h)", ["I018", "I019"]),
        ("%r: f32[M, N] = add(%x, %v)", ["I019"]),
        ("%r: f32[M, N] = broadcast(%v) {dims = [0]}", ["I019"]),
        ("%r: f32[M, N] = broadcast(%v) {dims = [2]}", ["I019"]),
        ("%r: f32[M, N] = broadcast(%x) {dims = [1, 0]}", ["I019"]),
        ("%r: f32[M, N] = broadcast(%v) {dims = [1]}", []),
        ("%r: f32[M, N] = transpose(%x) {perm = [0]}", ["I019"]),
        ("%r: f32[M, N] = transpose(%x) {perm = [1, 0]}", ["I020"]),
        ("%r: f32[M, N] = lt(%x, %x)", ["I020"]),
        ("%u: f32[M, N] = exp(%x) %r: f32[M, N] = exp(%x)", ["I021"]),
        ("%u: f32[M, N] = exp(%h) %r: f32[M, N] = exp(%h)", ["I018", "I018", "I021"]),
    ],
)
def test_rules(line: str, codes: list[str]) -> None:
    assert checked(line) == codes


def test_constants_have_the_type_of_their_number() -> None:
    assert checked("%r: f32[] = constant() {value = 1.0}", "f32[]") == []
    assert checked("%r: f32[] = constant() {value = 1}", "f32[]") == ["I020"]
    assert checked("%r: i32[] = constant() {value = 2147483648}", "i32[]") == ["I020"]
    assert checked("%r: i64[] = constant() {value = 2147483648}", "i64[]") == []
    assert checked("%r: i64[] = constant() {value = 9223372036854775808}", "i64[]") == ["I018"]
    assert checked("%r: bool[] = constant() {value = true}", "bool[]") == []


def test_ssa() -> None:
    x, y = (Value(name=name, type=TensorType(dtype=f32)) for name in "xy")
    other = replace(x, type=f32[Dim("M")])
    twice = Operation(op="neg", operands=(x,), result=x)
    function = Function(name="f", params=(x,), body=(twice,), results=(y,))
    assert [each.code for each in violations(function)] == ["I010", "I011"]
    function = Function(name="f", params=(x,), body=(), results=(other,))
    assert [each.code for each in violations(function)] == ["I012"]
    early = Operation(op="neg", operands=(y,), result=Value(name="0", type=y.type))
    late = Operation(op="neg", operands=(x,), result=y)
    function = Function(name="f", params=(x,), body=(early, late), results=(early.result,))
    assert [each.code for each in violations(function)] == ["I011"]


def test_all_violations_are_reported_together() -> None:
    text = "func @f(%x: f16[]) -> f16[] { %0: f16[] = exp(%x) %1: f16[] = epx(%0) return %1 }"
    with expect_error("I023", "CK-I018", "CK-I013", "nearest: exp"):
        verify(parse_function(text))


def test_one_violation_is_raised_itself_and_points_at_its_line() -> None:
    with expect_error("I018") as caught:
        verify(parse_function("func @f(%x: f16[]) -> f16[] {\n %0: f16[] = exp(%x)\n return %0 }"))
    assert caught.value.at is not None
    assert caught.value.at.line == 2


def test_function_names_are_unique() -> None:
    module = parse("func @f() -> () { return } func @f() -> () { return }")
    with expect_error("I022"):
        verify_module(module)
    assert verify_module(Module()) == Module()


def test_regions_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    attr = AttrRow(name="body", kind=AttrKind.REGION)
    row = replace(OPS["neg"], name="map", attrs=(attr,), kind=OpKind.POINTWISE)
    for module in (infer, verifier):
        monkeypatch.setattr(module, "OPS", {**OPS, "map": row})
    region = parse_function("func @g(%x: f16[]) -> f16[] { %0: f16[] = exp(%x) return %0 }")
    x, y = (Value(name=name, type=TensorType(dtype=f32)) for name in "xy")
    operation = Operation(op="map", operands=(x,), attrs=make_attrs(body=region), result=y)
    function = Function(name="f", params=(x,), body=(operation,), results=(y,))
    assert [each.code for each in violations(function)] == ["I018"]


@given(gemm_functions())
def test_drawn_functions_are_sound(function: Function) -> None:
    assert verify(function) is function


@given(programs())
def test_drawn_programs_are_sound(function: Function) -> None:
    assert verify(function) is function
