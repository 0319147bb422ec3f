# SPDX-License-Identifier: MIT
"""The C of pointwise functions: each region of rank-0 values becomes one plain C function.

The text is C23 and HIP C++ alike. As C it fills a stencil; at the end of a kernel's source it is
the same kernel from source. Each statement carries the user's line (``#line``), so that a compiler
error or a fault in it points there.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from cklang.errors import error
from cklang.ir.casts import CASTS
from cklang.ir.nodes import Attr, Function, Operation, Value
from cklang.ir.ops import OPS, Kind
from cklang.source import Span
from cklang.types import DType, i64
from cklang.types import Kind as DTypeKind

DIVIDES = frozenset({"floor_divide", "mod"})
"""The ops whose C calls helpers of ``cklang/divide.h``; fills without them do not read it."""

WIDE = frozenset(name for name, op in OPS.items() if op.c and "ck64_" in op.c)
"""Functions whose C calls helpers of ``cklang/trig64.h``."""

_C_TYPES = {DTypeKind.FLOAT: "float", DTypeKind.INT: "int", DTypeKind.BOOL: "bool"}
_INT = {"int": "int", "unsigned": "unsigned", "bits": 32, "last": 31}
_LONG = {"int": "long", "unsigned": "unsigned long", "bits": 64, "last": 63}
"""What the C of integer ops says of their width."""


def c_type(dtype: DType) -> str:
    """Return the C type that holds a value of ``dtype`` inside an epilogue."""
    return i64.c if dtype == i64 else _C_TYPES[dtype.kind]


def c_functions(functions: Mapping[str, Function], comments: Sequence[str] = ()) -> str:
    """Return the C text that defines each symbol as its region.

    Args:
        functions: Regions of rank-0 values only: floats, integers and bools; their results are
            f32 or integers, and several are the members of a struct.
        comments: Lines written above them, such as the user's Python.
    """
    lines = [*includes_of(functions.values()), "", *(f"// {line}".rstrip() for line in comments)]
    return "\n".join([*lines, *map(_c_function, functions, functions.values())])


def includes_of(functions: Iterable[Function]) -> Iterator[str]:
    """Yield the directives for the headers whose helpers the C of regions calls."""
    yield '#include "cklang/math.h"'
    operations = {operation.op for function in functions for operation in function.body}
    if operations & DIVIDES:
        yield '#include "cklang/divide.h"'
    if operations & WIDE:
        yield '#include "cklang/trig64.h"'


def _c_function(symbol: str, function: Function) -> str:
    """Return the C text of one function; what it includes is not in it."""
    params = ", ".join(f"{c_type(p.type.dtype)} {c_value(p, function)}" for p in function.params)
    lines = [
        *results_struct(symbol, function),
        f"CK_FUNCTION {c_result(symbol, function)} {symbol}({params})",
        "{",
    ]
    for operation in function.body:
        lines += c_statement(operation, function)
    values = [c_value(value, function) for value in function.results]
    if len(values) == 1:
        lines.append(f"    return {values[0]};")
    else:
        lines.append(f"    const {c_result(symbol, function)} results = {{{', '.join(values)}}};")
        lines.append("    return results;")
    return "\n".join([*lines, "}", ""])


def c_result(symbol: str, function: Function) -> str:
    """Return the C type that the function of a region returns."""
    if len(function.results) == 1:
        return c_type(function.results[0].type.dtype)
    return f"struct {symbol}_results"


def results_struct(symbol: str, function: Function) -> Iterator[str]:
    """Yield the lines that define the type of several results: members ``e0``, ``e1``...

    The stencil and the fill define it alike, each for itself; one text may hold both.
    """
    if len(function.results) == 1:
        return
    types = (c_type(value.type.dtype) for value in function.results)
    members = " ".join(f"{type_} e{place};" for place, type_ in enumerate(types))
    macro = f"{symbol}_results".upper()
    yield f"#ifndef {macro}"
    yield f"#define {macro}"
    yield f"{c_result(symbol, function)} {{ {members} }};"
    yield "#endif"


def c_statement(operation: Operation, function: Function) -> Iterator[str]:
    """Yield the lines that define the result of one operation of a region."""
    if operation.span is not None:
        yield c_line(operation.span)
    result = operation.result
    declaration = f"const {c_type(result.type.dtype)} {c_value(result, function)}"
    yield f"    {declaration} = {_expression(operation, function)};"


def c_line(span: Span) -> str:
    """Return the directive that gives the next line the place of ``span``."""
    name = span.source.name.replace("\\", "\\\\").replace('"', '\\"')
    return f'#line {span.line} "{name}"'


def _expression(operation: Operation, function: Function) -> str:
    template, width = _template(operation), _LONG if _decides(operation) == i64 else _INT
    names = [c_value(value, function) for value in operation.operands]
    dtype = operation.result.type.dtype
    attrs = {
        key: _literal(value, dtype)
        for key, value in operation.attrs
        if isinstance(value, (bool, int, float))
    }
    return template.format(*names, **attrs, **width)


def _template(operation: Operation) -> str:
    if operation.op == "cast":
        pair = (operation.operands[0].type.dtype, operation.result.type.dtype)
        if pair in CASTS:
            return CASTS[pair]
        raise error("L001", at=operation.span, op=f"cast from {pair[0]} to {pair[1]}")
    row, dtype = OPS[operation.op], _decides(operation)
    template = row.c_int if dtype.kind is DTypeKind.INT else row.c
    if template is None or row.kind is Kind.ANCHOR:
        raise error("L001", at=operation.span, op=f"{operation.op} of {dtype}")
    return row.c_i64 or template if dtype == i64 else template


def _decides(operation: Operation) -> DType:
    """Return the dtype in which an operation computes: where(c, x, y) in that of x and y."""
    value = operation.operands[-1] if operation.operands else operation.result
    return value.type.dtype


def _literal(value: Attr, dtype: DType) -> str:
    """Return a C literal; negative ones in parentheses, as they may follow an operator."""
    if dtype.kind is DTypeKind.BOOL and isinstance(value, bool):
        return "true" if value else "false"
    if dtype.kind is DTypeKind.INT and isinstance(value, int):
        return str(value) if value >= 0 else f"({value + 1} - 1)"
    number = float(np.float32(value))  # type: ignore[arg-type]
    if math.isnan(number):
        return '__builtin_nanf("")'
    if math.isinf(number):
        return "__builtin_inff()" if number > 0 else "(-__builtin_inff())"
    # The shortest decimal that reads back as the same f32.
    text = np.format_float_positional(np.float32(abs(number)), unique=True, trim="0")
    if not 1e-4 <= abs(number) < 1e7 and number != 0.0:
        text = np.format_float_scientific(np.float32(abs(number)), unique=True, trim="0")
    return f"{text}f" if math.copysign(1.0, number) > 0 else f"(-{text}f)"


def c_value(value: Value, function: Function) -> str:
    """Return what a value of a region is called in C."""
    # Parameters keep their names (acc, d0, ...); results are numbered by the region.
    return value.name if value in function.params else f"v{value.name}"
