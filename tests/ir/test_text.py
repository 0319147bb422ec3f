# SPDX-License-Identifier: MIT
"""Text and nodes: round trip, and what the parser says to typical mistakes."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklang.errors import CkSyntaxError
from cklang.ir.nodes import (
    Attr,
    Function,
    Module,
    Operation,
    Value,
    make_attrs,
    print_function,
    print_module,
)
from cklang.ir.parser import MISTAKES, parse, parse_function
from cklang.types import DTYPES, Dim, TensorType, f32
from tests.support.errors import expect_error
from tests.support.programs import gemm_functions, programs

LINEAR = """\
func @linear(%x: f16[M, K], %w: f16[N, K], %bias: f16[N]) -> f16[M, N] {
  %0: f16[K, N] = transpose(%w) {perm = [1, 0]}
  %1: f32[M, N] = gemm(%x, %0)
  %2: f32[N] = cast(%bias) {to = f32}
  %3: f32[M, N] = broadcast(%2) {dims = [1]}
  %4: f32[M, N] = add(%1, %3)
  %5: f16[M, N] = cast(%4) {to = f16}
  return %5
}"""

names = st.from_regex(r"[^\W\d]\w{0,5}", fullmatch=True).filter(str.isidentifier)
types = st.builds(
    TensorType,
    dtype=st.sampled_from(list(DTYPES.values())),
    shape=st.lists(st.one_of(st.integers(0, 4096), names.map(Dim)), max_size=3).map(tuple),
)


def attributes(depth: int) -> st.SearchStrategy[Attr]:
    """All kinds of attributes, regions among them."""
    plain = st.one_of(
        st.integers(), st.floats(), st.booleans(), st.text(), st.sampled_from(list(DTYPES.values()))
    )
    lists = st.recursive(plain, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4)
    return st.one_of(lists, functions(depth - 1)) if depth else lists


@st.composite
def functions(draw: st.DrawFn, depth: int = 1) -> Function:
    """Functions of any ops with any attributes: sound in names, free in meaning."""
    values: list[Value] = []

    def fresh() -> Value:
        value = Value(name=f"{draw(names)}_{len(values)}", type=draw(types))
        values.append(value)
        return value

    params = tuple(fresh() for _ in range(draw(st.integers(0, 3))))
    body = []
    for _ in range(draw(st.integers(0, 3))):
        used = tuple(draw(st.lists(st.sampled_from(values), max_size=3))) if values else ()
        attrs = draw(st.dictionaries(names, attributes(depth), max_size=3))
        body.append(
            Operation(
                op=draw(names), operands=used, attrs=tuple(sorted(attrs.items())), result=fresh()
            )
        )
    results = tuple(draw(st.lists(st.sampled_from(values), max_size=2))) if values else ()
    return Function(name=draw(names), params=params, body=tuple(body), results=results)


@given(st.lists(functions(), max_size=2).map(lambda fs: Module(functions=tuple(fs))))
def test_round_trip_of_any_module(module: Module) -> None:
    assert parse(print_module(module)) == module


@given(st.one_of(gemm_functions(), programs()))
def test_round_trip_of_programs(function: Function) -> None:
    read = parse_function(print_function(function))
    assert read == function
    assert hash(read) == hash(function)


def test_text_is_stable() -> None:
    assert str(parse_function(LINEAR)) == LINEAR


@pytest.mark.parametrize(
    ("one", "other"),
    [(0.0, -0.0), (1, 1.0), (1, True), (0.0, False), ((1,), (1.0,)), (math.inf, -math.inf)],
)
def test_attributes_that_python_confuses_differ(one: Attr, other: Attr) -> None:
    value = Value(name="0", type=f32[()])
    first, second = (
        Operation(op="f", operands=(), attrs=make_attrs(a=attr), result=value)
        for attr in (one, other)
    )
    assert first != second
    assert Module(functions=(Function(name="f", params=(), body=(first,), results=(value,)),)) != (
        Module(functions=(Function(name="f", params=(), body=(second,), results=(value,)),))
    )


def test_nan_equals_itself() -> None:
    value = Value(name="0", type=f32[()])
    nans = [
        Operation(op="f", operands=(), attrs=make_attrs(a=float("nan")), result=value)
        for _ in range(2)
    ]
    assert nans[0] == nans[1]
    assert hash(nans[0]) == hash(nans[1])


def test_spans_are_no_part_of_equality_and_point_at_the_text() -> None:
    function = parse_function(LINEAR, "a.ck")
    other = parse_function("\n\n# a comment\n" + LINEAR, "b.ck")
    assert function == other
    spans = [operation.span for operation in (function.body[1], other.body[1])]
    assert [str(span) for span in spans] == ["a.ck:3:3", "b.ck:6:3"]
    assert "gemm(%x, %0)  # a.ck:3:3" in print_function(function, locations=True)


@pytest.mark.parametrize(
    ("row", "text"), [(row, text) for row in MISTAKES for text in row.examples]
)
def test_typical_mistakes_are_named(row: object, text: str) -> None:
    with expect_error("I003", kind=CkSyntaxError) as caught:
        parse(text)
    assert caught.value.message == row.problem  # type: ignore[attr-defined]
    assert caught.value.at is not None
    assert "^" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("gemm(%x, %0)", "gemm %x, %0", "operands stand in parentheses after the op"),
        ("add(%1, %3)", "%1 + %3", "there are no infix operators or nested expressions"),
        ("%4: f32[M, N]", "%4", "a result needs its type before the ="),
        ("f16[N]) ->", "f16) ->", "a type needs brackets for its shape"),
        ("dims = [1]", "dims: [1]", "an attribute is written name = value"),
        ("  return %5\n", "", "a function ends with return"),
        ("return %5\n}", "return %5", "the text ends inside a function"),
        ("return %5", "return %5;", "';' begins nothing in the mini-IR"),
        ("[M, K]", "[M, -1]", "an extent cannot be -1"),
        (
            "-> f16[M, N]",
            "-> f32[M, N]",
            "the function is declared to return f32[M, N] but returns f16[M, N]",
        ),
    ],
)
def test_mistakes_in_a_real_text(old: str, new: str, problem: str) -> None:
    with expect_error("I003", kind=CkSyntaxError) as caught:
        parse(LINEAR.replace(old, new, 1))
    assert caught.value.message == problem


@pytest.mark.parametrize(
    ("old", "new", "code", "line"),
    [
        ("f16[N]", "h16[N]", "I004", 1),
        ("gemm(%x", "gemm(%y", "I005", 3),
        ("add(%1", "add(%4", "I005", 6),
        ("%1: f32", "%0: f32", "I010", 3),
        ("{dims = [1]}", "{dims = [1], dims = [0]}", "I002", 5),
        ("[1]}", '"\\q"}', "I003", 5),
    ],
)
def test_errors_beyond_the_grammar(old: str, new: str, code: str, line: int) -> None:
    with expect_error(code) as caught:
        parse(LINEAR.replace(old, new))
    assert caught.value.at is not None
    assert caught.value.at.line == line


def test_a_text_with_two_functions_is_no_function() -> None:
    with pytest.raises(CkSyntaxError, match="holds 2 functions"):
        parse_function(f"{LINEAR}\n{LINEAR}")


def test_caret_picture() -> None:
    with pytest.raises(CkSyntaxError) as caught:
        parse(LINEAR.replace("gemm(%x", "gemm(%y"), "linear.ck")
    assert str(caught.value) == "\n".join(
        [
            "CK-I005 %y is used before it is defined",
            "  --> linear.ck:3:24",
            "  |",
            "3 |   %1: f32[M, N] = gemm(%y, %0)",
            "  |                        ^^",
            "   = defined here: %x, %w, %bias, %0",
        ]
    )
