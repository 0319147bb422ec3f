# SPDX-License-Identifier: MIT
"""The C of the user's functions, which fill a stencil of attention.

They read tensors themselves: an index is limited to its axis, so that no expression leaves the
tensor, and an axis of extent 1 is broadcast.
"""

from collections.abc import Iterator
from dataclasses import replace

from cklang.fusion.functions import Functions
from cklang.ir.nodes import Function, Operation, Value
from cklang.lowering.pointwise import c_line, c_statement, c_type, c_value, includes_of

_HOLE = '#include "cklang/attention_hole.h"'
_LIMIT = """CK_MATH long
ck_at(int index, int extent, int stride)
{
    const int low = index < 0 ? 0 : index;
    return (long)(low < extent ? low : extent - 1) * stride;
}
"""
_HEADS = {
    "score": "CK_FUNCTION float ck_score(float s, CK_ATTENTION_PARAMS)",
    "derivative": "CK_FUNCTION float ck_derivative(float s, CK_ATTENTION_PARAMS)",
    "mask": "CK_FUNCTION int ck_mask(CK_ATTENTION_PARAMS)",
    "output": "CK_FUNCTION float ck_output(float o, CK_ATTENTION_PARAMS)",
    "block": "CK_FUNCTION int ck_block(CK_ATTENTION_PARAMS)",
    "inside": "CK_FUNCTION int ck_inside(CK_ATTENTION_PARAMS)",
}
# What the parameters of regions are called in C; those of tensors are t0, t1..., elements of t.
_NAMES = {"q_len": "S", "k_len": "T"}


def attention_fill(functions: Functions) -> str:
    """Return the C text that defines the functions; empty if there is none.

    ``score``, ``mask`` and ``output`` are regions as :mod:`cklang.ir.attention` describes them,
    ``derivative`` one as :mod:`cklang.ir.attention_gradients` does.
    """
    regions = [functions[hole] for hole in _HEADS if hole in functions]
    if not regions:
        return ""
    reads = any(operation.op == "element" for region in regions for operation in region.body)
    includes = "\n".join([*includes_of(regions), _HOLE, ""])
    limit = [_LIMIT] if reads else []
    return "\n".join([includes, *limit, *map(_c_function, regions)])


def _c_function(region: Function) -> str:
    named = _renamed(region)
    lines = [_HEADS[region.name], "{"]
    for operation in named.body:
        lines += (
            _element(operation, named)
            if operation.op == "element"
            else c_statement(operation, named)
        )
    lines += [f"    return {c_value(named.results[0], named)};", "}", ""]
    return "\n".join(lines)


def _element(operation: Operation, region: Function) -> Iterator[str]:
    tensor, *indices = operation.operands
    dtype = tensor.type.dtype
    name = f"t[{c_value(tensor, region).removeprefix('t')}]"
    terms = [
        f"ck_at({c_value(index, region)}, {name}.extent[{axis}], {name}.stride[{axis}])"
        for axis, index in enumerate(indices)
    ]
    place = " + ".join(terms) or "0"
    result = f"const {c_type(dtype)} {c_value(operation.result, region)}"
    if operation.span is not None:
        yield c_line(operation.span)
    yield f"    {result} = ((const CK_GLOBAL {dtype.c} *){name}.data)[{place}];"


def _renamed(region: Function) -> Function:
    """Return the region with its parameters named as the C function's."""
    names = {
        param.name: replace(param, name=_NAMES.get(param.name, param.name.replace("d", "t")))
        for param in region.params
    }

    def new(value: Value) -> Value:
        return names.get(value.name, value)

    return replace(
        region,
        params=tuple(map(new, region.params)),
        body=tuple(
            replace(operation, operands=tuple(map(new, operation.operands)))
            for operation in region.body
        ),
        results=tuple(map(new, region.results)),
    )
