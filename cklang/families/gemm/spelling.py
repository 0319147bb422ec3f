# SPDX-License-Identifier: MIT
"""Signatures spelled on a command line: element types, layouts, and the operands of functions.

``fp8,fp8,bf16:rcr:row=f32,full`` is fp8 A and B, a bf16 result, layouts rcr, and two operands of
the epilogue. ``f16:rcr:row,b.full=i8,b.column=f32`` has a B that a function computes from a matrix
of i8 and a number for each index of B's other axis.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from cklang.codec import dtype_of, enum_of
from cklang.errors import error
from cklang.families.gemm.key import Algorithm, ConvSpecial, DKind, Reduction
from cklang.families.gemm.problem import Problem
from cklang.families.gemm.synthetic import problem
from cklang.fusion.functions import Functions
from cklang.ir.casts import CASTS
from cklang.ir.nodes import Function
from cklang.ir.parser import parse_function
from cklang.types import DType, Kind, f32, i32


def algorithm_words(algorithm: Algorithm) -> str:
    """Return an algorithm as one line of text."""
    tile, warps, warp_tile = (
        "x".join(map(str, triple))
        for triple in (algorithm.tile, algorithm.warps, algorithm.warp_tile)
    )
    vectors = f"A {algorithm.vector_a}, B {algorithm.vector_b}, E {algorithm.vector_e}"
    if algorithm.vector_d:
        vectors += f", D {', '.join(map(str, algorithm.vector_d))}"
    return (
        f"tile {tile}, warps {warps}, warp tile {warp_tile}, {algorithm.pipeline.value}, "
        f"{algorithm.scheduler.value}, {algorithm.epilogue.value}, vectors {vectors}"
        + "".join(f", {word}" for word in _more(algorithm))
    )


def _more(a: Algorithm) -> list[str]:
    """Return what most algorithms do not have."""
    words = {
        f"{a.special.value} only": a.special is not ConvSpecial.DEFAULT,
        f"{a.groups_merged} groups in a tile": a.groups_merged > 1,
        f"{a.split_k} workgroups share a tile": a.split_k > 1,
        "all workgroups share all steps": a.stream_k,
        f"reduction {a.reduction.value}": a.reduction is not Reduction.NONE,
    }
    return [word for word, said in words.items() if said]


_SIDES = ("d", "a", "b")
"""The sides of epilogue, A and B, in the order of a kernel's functions."""

Operands = Sequence[tuple[DType, DKind]]


def spelled(text: str, extents: tuple[int, int, int] = (1, 1, 1)) -> tuple[Problem, Functions]:
    """Return a problem of the signature ``text``, and functions that read all its operands."""
    parts = text.split(":")
    if len(parts) not in (2, 3):
        raise error("K043", got=text)
    types = [dtype_of(word) for word in parts[0].split(",")]
    if len(types) not in (1, 3):
        raise error("K044", count=len(types), got=parts[0])
    a, b, e = types * 3 if len(types) == 1 else types
    operands = _operands(parts[2] if len(parts) == 3 else "", a)
    functions = _functions(i32 if a.kind is Kind.INT else f32, operands)
    named: dict[str, Any] = {"functions": functions.digest, "d": operands["d"]}
    named |= {"reads_a": operands["a"], "reads_b": operands["b"]}
    m, n, k = extents
    return problem(m, n, k, a=a, b=b, e=e, layouts=parts[1], **named), functions


def _operands(text: str, default: DType) -> dict[str, list[tuple[DType, DKind]]]:
    """Read ``row,b.full=i8``; an operand without a dtype has that of A."""
    operands: dict[str, list[tuple[DType, DKind]]] = {side: [] for side in _SIDES}
    for word in filter(None, text.split(",")):
        place, _, dtype = word.partition("=")
        side, dot, kind = place.rpartition(".")
        if dot and side not in ("a", "b"):
            raise error("K045", got=word, side=side)
        read = dtype_of(dtype) if dtype else default
        if (read, f32) not in CASTS and read is not f32:
            legal = ", ".join(sorted({str(source) for source, to in CASTS if to is f32} | {"f32"}))
            raise error("K046", got=word, dtype=read, known=legal)
        operands[side or "d"].append((read, enum_of(DKind, kind)))
    return operands


def _functions(acc: DType, operands: Mapping[str, Operands]) -> Functions:
    """Functions that add up all that they read; a stencil leaves them open."""
    reads = {side: [dtype for dtype, kind in operands[side] if not kind.written] for side in _SIDES}
    further = sum(kind.written for _, kind in operands["d"])
    # The largest of a group is a parameter more, and what it is the largest of a result.
    groups = [f32] * any(kind.group for _, kind in operands["d"])
    reads["d"] += groups
    values = {
        "epilogue": [("%acc", acc), *((f"%d{i}", dtype) for i, dtype in enumerate(reads["d"]))],
        "prologue_a": [(f"%a{i}", dtype) for i, dtype in enumerate(reads["a"])],
        "prologue_b": [(f"%b{i}", dtype) for i, dtype in enumerate(reads["b"])],
    }
    counts = {"epilogue": 1 + further + len(groups)}
    return Functions(
        **{hole: _function(some, counts.get(hole, 1)) for hole, some in values.items() if some}
    )


def _function(values: Sequence[tuple[str, DType]], count: int) -> Function:
    params = ", ".join(
        f"{name}: {f32 if dtype.kind is Kind.FLOAT else dtype}[]" for name, dtype in values
    )
    lines: list[str] = []
    result = _sum(values, lines)
    head = f"func @epilogue({params}) -> {', '.join(['f32[]'] * count)} {{"
    last = f"  return {', '.join([result] * count)}"
    return parse_function("\n".join([head, *lines, last, "}"]))


def _sum(values: Sequence[tuple[str, DType]], lines: list[str]) -> str:
    """Write what adds up the values as f32, and return the name of the sum."""

    def new(text: str) -> str:
        lines.append(f"  %{len(lines)}: f32[] = {text}")
        return f"%{len(lines) - 1}"

    floats = [
        name if dtype.kind is Kind.FLOAT else new(f"cast({name}) {{to = f32}}")
        for name, dtype in values
    ]
    total = floats[0]
    for name in floats[1:]:
        total = new(f"add({total}, {name})")
    return total
