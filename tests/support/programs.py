# SPDX-License-Identifier: MIT
"""Hypothesis strategies for programs: random functions of the mini-IR, and arrays to call them.

Every draw obeys the rules of the IR and has kernels; what is not used is not there.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from cklang.families import plan_of
from cklang.fusion.plan import MAX_READS
from cklang.ir.builder import Builder
from cklang.ir.casts import CASTS
from cklang.ir.nodes import Attr, Function, Value
from cklang.ir.ops import OPS, AttrRow, Kind, Op
from cklang.ir.rewrite import needed_operations
from cklang.ir.rules import AttrKind
from cklang.testing.strategies import Values, arrays, extents, strided
from cklang.types import Dim, DType, TensorType, bf16, bool_, f16, f32, i8, i32

_M, _N, _K = Dim("M"), Dim("N"), Dim("K")
_POINTWISE = [row for row in OPS.values() if row.kind is Kind.POINTWISE]


@st.composite
def gemm_functions(
    draw: st.DrawFn,
    depth: int = 6,
    dtypes: Sequence[DType] = (f16, bf16, f32),
    result: Sequence[DType] = (f16, bf16, f32),
    reads: int = 4,
    prologues: bool = False,
) -> Function:
    """Return functions of one gemm with a random epilogue.

    Args:
        draw: Hypothesis's.
        depth: Number of pointwise steps; some are dropped when nothing uses them.
        dtypes: What A and B may be.
        result: What the result may be.
        reads: Most D operands: matrices, rows, columns, their transposes and scalars.
        prologues: Whether A and B may be computed, from as many operands.
    """
    dtype = draw(st.sampled_from(list(dtypes)))
    builder = Builder("gemm_epilogue")
    most = min(reads, MAX_READS) if prologues else 0
    a = _operand(draw, builder, "a", dtype, (_M, _K), most, depth)
    b = _operand(draw, builder, "b", dtype, (_K, _N), most, depth)
    product = builder.append("gemm", a, b)
    leaves = [product]
    for index in range(draw(st.integers(0, min(reads, MAX_READS)))):
        leaves.append(_read(draw, builder, f"d{index}", (_M, _N)))
    grown = _grow(draw, builder, leaves, depth)
    return _finish(draw, builder, grown, product, result)


@st.composite
def computed_products(draw: st.DrawFn, depth: int = 6) -> Function:
    """Return functions of one gemm whose A is a random DAG.

    It always reads the same matrix, row, column and scalar, so all are fills of one stencil.
    """
    builder = Builder("gemm_prologue")
    leaves = [
        builder.cast(builder.param("x", f16[_M, _K]), f32),
        builder.broadcast(builder.param("row", f32[_K]), (_M, _K)),
        builder.broadcast(builder.cast(builder.param("column", f16[_M]), f32), (_M, _K), dims=(0,)),
        builder.broadcast(builder.param("scalar", TensorType(dtype=f32)), (_M, _K)),
    ]
    last = leaves[0]
    for leaf in leaves[1:]:
        last = builder.append(draw(st.sampled_from(["add", "mul", "sub", "maximum"])), last, leaf)
    grown = _grow(draw, builder, [*leaves, last], depth)
    latest = next(value for value in reversed(grown) if value.type.dtype == f32)
    # The walk meets the operands in one order: first in the chain of all.
    a = builder.cast(builder.append("minimum", last, latest), f16)
    b = builder.append("transpose", builder.param("w", f16[_N, _K]), perm=(1, 0))
    return without_dead_code(builder.finish(builder.append("gemm", a, b)))


@st.composite
def epilogues(draw: st.DrawFn, depth: int = 6, reads: int = 4) -> Function:
    """Return epilogue regions in canonical form: ``%acc``, ``%d0``… to one f32."""
    function = draw(gemm_functions(depth=depth, reads=reads))
    return plan_of(function).kernels[-1].functions["epilogue"]


@st.composite
def programs(draw: st.DrawFn, gemms: int = 3, depth: int = 4) -> Function:
    """Return functions of up to ``gemms`` gemms that read each other's results in all ways.

    All matrices are [M, M]: so each value can be an operand, a read and a transpose of another.
    """
    builder = Builder("program")
    pool = [builder.param(f"p{index}", f16[_M, _M]) for index in range(2)]
    wide = [builder.cast(value, f32) for value in pool]
    product = wide[0]
    for index in range(draw(st.integers(1, gemms))):
        left, right = draw(st.sampled_from(pool)), draw(st.sampled_from(pool))
        product = builder.append("gemm", left, _turn(draw, builder, right))
        wide.append(product)
        wide.append(_read(draw, builder, f"d{index}", (_M, _M)))
        wide.append(_turn(draw, builder, draw(st.sampled_from(wide))))
        wide = _grow(draw, builder, wide, depth)
        operand = next(value for value in reversed(wide) if value.type.dtype == f32)
        # What follows no gemm becomes a prologue of the next one.
        operand = builder.append("add", operand, draw(st.sampled_from([product, wide[0]])))
        wide.append(operand)
        pool.append(builder.cast(operand, f16))
    return _finish(draw, builder, wide, product, (f16, f32))


@st.composite
def arguments(
    draw: st.DrawFn, function: Function, largest: int = 40, values: Sequence[Values] = tuple(Values)
) -> tuple[Any, ...]:
    """Return arrays for the parameters of ``function``, of drawn extents, values and strides."""
    sizes: dict[Dim, int] = {}
    drawn = []
    for param in function.params:
        shape = []
        for extent in param.type.shape:
            if isinstance(extent, Dim):
                shape.append(sizes.setdefault(extent, draw(extents(largest))))
            else:
                shape.append(extent)
        array = draw(arrays(param.type.dtype, shape, values))
        drawn.append(draw(strided(array)))
    return tuple(drawn)


def without_dead_code(function: Function) -> Function:
    """Return ``function`` without operations and parameters that its results do not need."""
    body = needed_operations(function.body, function.results)
    needed = {*function.results, *(operand for each in body for operand in each.operands)}
    params = tuple(value for value in function.params if value in needed)
    return replace(function, params=params, body=tuple(body))


def _finish(
    draw: st.DrawFn,
    builder: Builder,
    values: Sequence[Value],
    product: Value,
    result: Sequence[DType],
) -> Function:
    """Return a result that depends on the last product and the last value of each dtype."""
    latest = {value.type.dtype: value for value in values}
    last = latest[f32]
    if last != product:
        last = builder.append("add", last, product)
    if bool_ in latest:
        last = builder.append("where", latest[bool_], last, product)
    if i32 in latest:
        last = builder.append("add", last, builder.cast(latest[i32], f32))
    return without_dead_code(
        builder.finish(builder.cast(last, draw(st.sampled_from(list(result)))))
    )


def _operand(
    draw: st.DrawFn,
    builder: Builder,
    name: str,
    dtype: DType,
    shape: tuple[Dim, Dim],
    reads: int,
    depth: int,
) -> Value:
    """Return a stored matrix, or one that is computed from up to ``reads`` operands."""
    count = draw(st.integers(0, reads))
    if count:
        stored = draw(st.sampled_from([f16, bf16, f32, i8]))
        leaves = [builder.cast(builder.param(f"{name}0", stored[shape]), f32)]
        leaves += [_read(draw, builder, f"{name}{index}", shape) for index in range(1, count)]
        last = [value for value in _grow(draw, builder, leaves, depth) if value.type.dtype == f32]
        return builder.cast(builder.append("add", last[-1], leaves[0]), dtype)
    if draw(st.booleans()):
        return builder.append("transpose", builder.param(name, dtype[shape[::-1]]), perm=(1, 0))
    return builder.param(name, dtype[shape])


def _turn(draw: st.DrawFn, builder: Builder, value: Value) -> Value:
    if draw(st.booleans()):
        return value
    return builder.append("transpose", value, perm=(1, 0))


def _read(draw: st.DrawFn, builder: Builder, name: str, shape: tuple[Dim, Dim]) -> Value:
    """Add an operand of a function, of any kind, widened and broadcast to ``shape``."""
    rows, columns = shape
    dtype = draw(st.sampled_from([f16, bf16, f32, i32, bool_]))
    kinds: list[tuple[tuple[Dim | int, ...], tuple[int, ...] | None]] = [
        ((rows, columns), None),
        ((columns,), None),
        ((rows,), (0,)),
        ((), None),
        ((rows, 1), None),
        ((1, columns), None),
        ((columns, rows), None),
    ]
    kind = draw(st.integers(0, len(kinds) - 1))
    extents_, dims = kinds[kind]
    value = builder.param(name, TensorType(dtype=dtype, shape=extents_))
    if dtype in (f16, bf16):
        value = builder.cast(value, f32)
    if kind == len(kinds) - 1:
        return builder.append("transpose", value, perm=(1, 0))
    return builder.broadcast(value, shape, dims=dims)


def _grow(draw: st.DrawFn, builder: Builder, leaves: Sequence[Value], depth: int) -> list[Value]:
    """Return ``leaves`` and ``depth`` steps above them: pointwise ops, casts and constants."""
    values = list(leaves)
    for _ in range(depth):
        step = draw(st.sampled_from(["op", "op", "op", "op", "cast", "constant"]))
        if step == "constant":
            number = draw(st.one_of(_numbers(), st.integers(-100, 100), st.booleans()))
            values.append(builder.broadcast(builder.constant(number), leaves[0].type.shape))
        elif step == "cast":
            values.append(_cast(draw, builder, draw(st.sampled_from(values))))
        else:
            values.append(_apply(draw, builder, values))
    return values


def _numbers() -> st.SearchStrategy[float]:
    hard = st.sampled_from([0.0, -0.0, 1.0, 0.5, float("inf"), float("-inf"), float("nan")])
    return st.one_of(st.floats(-8, 8, width=32), hard)


def _cast(draw: st.DrawFn, builder: Builder, value: Value) -> Value:
    """Cast there, and back to a type that pointwise ops take."""
    to = draw(st.sampled_from([to for source, to in CASTS if source == value.type.dtype]))
    value = builder.cast(value, to)
    return builder.cast(value, f32) if to in (f16, bf16) else value


def _apply(draw: st.DrawFn, builder: Builder, values: Sequence[Value]) -> Value:
    """Apply an op that takes operands of the dtypes that there are, late values preferred."""
    by_dtype = {
        dtype: [value for value in values if value.type.dtype == dtype]
        for dtype in (f32, i32, bool_)
    }
    dtype = draw(st.sampled_from([each for each in by_dtype if by_dtype[each]]))
    rows = [row for row in _POINTWISE if _takes(row, dtype, by_dtype)]
    row = draw(st.sampled_from(rows))
    operands = [
        draw(st.sampled_from(by_dtype[operand_dtype][::-1]))
        for operand_dtype in _operand_dtypes(row, dtype)
    ]
    attrs: dict[str, Attr] = {attr.name: draw(_attr(attr)) for attr in row.attrs}
    return builder.apply(row.name, operands, attrs)


def _operand_dtypes(row: Op, dtype: DType) -> list[DType]:
    return [bool_, dtype, dtype] if row.operands == 3 else [dtype] * row.operands


def _takes(row: Op, dtype: DType, by_dtype: dict[DType, list[Value]]) -> bool:
    dtypes = _operand_dtypes(row, dtype)
    attrs: dict[str, Attr] = {attr.name: 0.0 for attr in row.attrs}
    legal = row.dtype.apply(tuple(dtypes), attrs) is not None
    return legal and all(by_dtype[each] for each in dtypes)


def _attr(row: AttrRow) -> st.SearchStrategy[Attr]:
    return {AttrKind.FLOAT: _numbers()}[row.kind]
