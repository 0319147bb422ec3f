# SPDX-License-Identifier: MIT
"""The kernels of a plan, evaluated in NumPy one after another, as their records say what they do.

No kernel is compiled: what is judged is the partition. Each family's record is read by itself:
operands and results through their axes, functions as they fill a stencil. Of the program only the
anchors of attention and the views of memory are taken.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cklang.families import FAMILIES
from cklang.families.attention.fuse_output import INDICES
from cklang.families.attention.plan import FusedAttention
from cklang.families.attention_backward.fuse import FusedAttentionGrad
from cklang.families.conv.plan import FusedConv
from cklang.families.gemm.plan import FusedGemm
from cklang.families.group_ids.fuse import FusedGroupIds
from cklang.families.moe_gate.fuse import FusedMoeGate
from cklang.families.rowwise.fuse import FusedRows
from cklang.families.rowwise.key import Reduction
from cklang.families.sample.fuse import FusedSample
from cklang.families.scan.fuse import FusedScan
from cklang.families.scatter.fuse import FusedScatter
from cklang.families.sort.fuse import FusedSort
from cklang.families.windows.fuse import FusedPool
from cklang.fusion.plan import AnyKernel, Plan, Read
from cklang.ir.builder import Builder
from cklang.ir.expert_gate import MOE_INDICES, MOE_WEIGHTS
from cklang.ir.grouped import group_ends, group_order
from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.op import Kind
from cklang.ir.ops import OPS
from cklang.ir.scatter import SCATTER, SCATTER_ADD
from cklang.ir.verifier import verify
from cklang.reference.evaluate import apply, bind, from_wide, limit, to_wide
from cklang.types import Dim, by_name, extent_value, extents_of

Array = Any

_PLACES = (Kind.VIEW, Kind.JOIN, Kind.PARTIAL, Kind.SHAPE, Kind.CONSTANT, Kind.INDEX)


def evaluate_plan(plan: Plan, arrays: Sequence[Any]) -> tuple[Array, ...]:
    """Return the results of a plan's program by its kernels.

    Args:
        plan: The plan.
        arrays: One array for each parameter of its function.
    """
    memory = _Memory(plan.function, arrays)
    with np.errstate(all="ignore"):
        for kernel in plan.kernels:
            memory.run(kernel)
        return tuple(from_wide(value, memory.read(value.name)) for value in plan.function.results)


class _Memory:
    """What kernels have written, in the dtypes that the reference computes in."""

    def __init__(self, function: Function, arrays: Sequence[Any]) -> None:
        bound = bind(function, arrays)
        self.function = function
        self.values: dict[str, Array] = dict(bound.values)
        self.dims: dict[Dim, int] = bound.dims
        self.definitions = function.definitions()

    def read(self, name: str) -> Array:
        """Return what is in memory under a name: written, or a view of such memory."""
        if name not in self.values:
            operation = self.definitions[name]
            kind = OPS[operation.op].kind
            if kind is Kind.EXTENT:
                (axis,) = (int(str(operation.attr("axis"))),)
                return np.int64(self.extents(operation.operands[0])[axis])
            assert kind in _PLACES, f"nothing has written %{name}"
            self.values[name] = apply(
                operation, [self.read(each.name) for each in operation.operands], self.dims
            )
        return self.values[name]

    def extents(self, value: Value) -> tuple[int, ...]:
        """Return the extents of a value in this call."""
        return value.type.extents(by_name(self.dims))

    def run(self, kernel: AnyKernel) -> None:
        """Write the results of one kernel, rounded as a store rounds."""
        written = _KERNELS[type(kernel)](self, kernel)
        for value, array in zip(kernel.results, written, strict=True):
            if array is None:
                continue
            # What is computed of one row for a whole batch has the batch in memory.
            whole = np.broadcast_to(array, self.extents(value))
            self.values[value.name] = to_wide(from_wide(value, whole))

    def spread(self, read: Read, shape: Sequence[int]) -> Array:
        """Return a value as a kernel of a shape sees it: along each axis its own, or repeated."""
        return np.broadcast_to(_turned(self.read(read.value.name), read.axes), shape)

    def called(self, function: Function, known: Mapping[str, Array]) -> list[Array]:
        """Return the results of a region for all elements of arrays at once."""
        values = {param.name: known[param.name] for param in function.params}
        for operation in function.body:
            operands = [values[each.name] for each in operation.operands]
            if operation.op == "element":
                table, *places = operands
                result = _element(table, places)
            else:
                result = apply(operation, operands, self.dims)
            values[operation.result.name] = limit(operation.result, result)
        return [values[result.name] for result in function.results]


def _turned(array: Array, axes: Sequence[int | None]) -> Array:
    """Return an array with axis ``axes[i]`` as axis i; axes of extent 1 that have none vanish."""
    order = [axis for axis in axes if axis is not None]
    rest = [axis for axis in range(array.ndim) if axis not in order]
    assert all(array.shape[axis] == 1 for axis in rest)
    turned = array.transpose([*order, *rest])
    turned = turned.reshape(turned.shape[: len(order)])
    return turned[tuple(np.newaxis if axis is None else slice(None) for axis in axes)]


def _element(table: Array | Callable[..., Array], places: Sequence[Array]) -> Array:
    if callable(table):
        return table(*places)
    limited = [
        np.clip(place, 0, extent - 1) for place, extent in zip(places, table.shape, strict=True)
    ]
    return table[tuple(limited)]


def _by_function(memory: _Memory, kernel: AnyKernel) -> Sequence[Array | None]:
    """Evaluate the kernel of a family that gives its kernels as functions."""
    function = verify(FAMILIES[kernel.family].tuning.as_function(kernel), allow_unused=True)
    inputs = {value.name: memory.read(value.name) for value in kernel.inputs}
    return memory.called(function, inputs)


def _product(memory: _Memory, kernel: FusedGemm) -> Sequence[Array | None]:
    if kernel.scatter is None:
        return _by_function(memory, kernel)
    memory.run(replace(kernel, scatter=None))
    return _scatter(memory, kernel.scatter)


def _applied(memory: _Memory, op: str, reads: Sequence[Array], result: Value, **attrs: Any) -> Any:
    """Return an op of the IR of arrays."""
    function = Builder("one")
    operands = [function.param(f"p{place}", result.type) for place in range(len(reads))]
    operation = Operation(
        op=op, operands=tuple(operands), attrs=tuple(sorted(attrs.items())), result=result
    )
    return apply(operation, reads, memory.dims)


def _scan(memory: _Memory, kernel: FusedScan) -> Sequence[Array | None]:
    source = memory.spread(kernel.source, memory.extents(kernel.result))
    op = "cumprod" if kernel.multiplies else "cumsum"
    return [_applied(memory, op, [source], kernel.result, axis=kernel.axis)]


def _sort(memory: _Memory, kernel: FusedSort) -> Sequence[Array | None]:
    source = memory.spread(kernel.source, kernel.type.extents(by_name(memory.dims)))
    attrs = {"axis": kernel.axis, "count": kernel.count, "descending": int(kernel.descending)}
    both = (("sort", kernel.values), ("argsort", kernel.indices))
    return [
        _applied(memory, op, [source], value, **attrs) for op, value in both if value is not None
    ]


def _moe_gate(memory: _Memory, kernel: FusedMoeGate) -> Sequence[Array | None]:
    shape = kernel.type.extents(by_name(memory.dims))
    reads = [memory.spread(kernel.logits, shape)]
    if kernel.bias is not None:
        reads.append(memory.spread(kernel.bias, shape[-1:]))
    both = ((MOE_WEIGHTS, kernel.weights), (MOE_INDICES, kernel.indices))
    attrs = dict(kernel.attrs)
    return [_applied(memory, op, reads, value, **attrs) for op, value in both if value is not None]


def _sample(memory: _Memory, kernel: FusedSample) -> Sequence[Array | None]:
    shape = kernel.type.extents(by_name(memory.dims))
    shapes = [shape, *(shape[: len(read.axes)] for read in kernel.reads[1:])]
    constants = {name: memory.definitions[name] for name, _ in kernel.constants}
    memory.values |= {
        name: limit(op.result, apply(op, [], memory.dims)) for name, op in constants.items()
    }
    reads = [memory.spread(*pair) for pair in zip(kernel.reads, shapes, strict=True)]
    return [_applied(memory, "sample", reads, kernel.result)]


def _group_ids(memory: _Memory, kernel: FusedGroupIds) -> Sequence[Array | None]:
    ids = memory.spread(kernel.ids, [memory.read(kernel.ids.value.name).size])
    (count,) = extents_of((kernel.count,), by_name(memory.dims))
    ends = group_ends(ids, (count,))
    both = ((kernel.order, group_order(ids, ends)), (kernel.ends, ends))
    return [array for value, array in both if value is not None]


def _scatter(memory: _Memory, kernel: FusedScatter) -> Sequence[Array | None]:
    shape = memory.extents(kernel.result)
    places = kernel.places.extents(by_name(memory.dims))
    indices = memory.spread(kernel.indices, places)
    rows_shape = (*shape[: kernel.axis], *places, *shape[kernel.axis + 1 :])
    operands = [indices, memory.spread(kernel.rows, rows_shape)]
    if kernel.base is not None:
        operands.append(memory.spread(kernel.base, shape))
    op = SCATTER_ADD if kernel.adds else SCATTER
    attrs = {"axis": kernel.axis, "in_place": 0, "unordered": 0}
    return [_applied(memory, op, operands, kernel.result, **attrs)]


_REDUCE: Mapping[Reduction, Any] = {
    Reduction.SUM: np.sum,
    Reduction.MAX: np.max,
    Reduction.MIN: np.min,
    Reduction.PROD: np.prod,
}


def _rows(memory: _Memory, kernel: FusedRows) -> Sequence[Array | None]:
    """Evaluate the functions of a kernel of rows, stage by stage."""
    shape = tuple(extent_value(each, by_name(memory.dims)) for each in kernel.space.extents)
    row = kernel.space.row
    known: dict[str, Array] = {"n": np.float64(math.prod(shape[axis] for axis in row))}
    for place, (read, gathered) in enumerate(zip(kernel.reads, kernel.gathered, strict=True)):
        own = kernel.indices.get(read.value.name)
        if own is not None:
            memory.values[own.name] = np.arange(memory.extents(own)[0])
        if gathered is None:
            known[f"d{place}"] = memory.spread(read, shape)
        else:
            known[f"d{place}"] = _Table(memory.read(read.value.name), read.axes, gathered, shape)
    functions = kernel.functions
    kept = [name for name in ("load", "common") if name in functions]
    if "common" in functions:
        first = len(functions["load"].results) if "load" in functions else 0
        common = memory.called(functions["common"], known)
        known |= {f"k{first + place}": each for place, each in enumerate(common)}
    if "load" in kept:
        loaded = memory.called(functions["load"], known)
        known |= {f"k{place}": each for place, each in enumerate(loaded)}
    count = 0
    for level, stage in enumerate(kernel.stages.reductions):
        parts = memory.called(functions[f"part{level}"], known)
        for reduction, part in zip(stage, parts, strict=True):
            elements = np.broadcast_to(part, shape)
            total = _REDUCE[reduction](elements, axis=row, keepdims=True)
            # As it is stored: a kernel behind may compare what it computes from it.
            known[f"r{count}"] = total.astype("f") if total.dtype.kind == "f" else total
            count += 1
    results = {
        name: memory.called(functions[name], known)
        for name in ("store", "finish")
        if name in functions
    }
    written = []
    for value, axes in zip(kernel.results, kernel.places, strict=True):
        name = "store" if kernel.space.varies(axes) else "finish"
        array = np.broadcast_to(results[name].pop(0), shape)
        array = array[tuple(slice(None) if axis is not None else 0 for axis in axes)]
        order = [axis for axis in axes if axis is not None]
        array = array.transpose([order.index(axis) for axis in sorted(order)])
        written.append(array.reshape(memory.extents(value)))
    return written


class _Table:
    """A tensor that a kernel of rows reads at computed indices along one axis."""

    def __init__(
        self, array: Array, axes: Sequence[int | None], gathered: int, shape: Sequence[int]
    ) -> None:
        self.array = array
        self.axes = axes
        self.gathered = gathered
        self.shape = shape

    def __call__(self, place: Array) -> Array:
        grid = np.indices(self.shape, sparse=True)
        at: list[Array] = [np.int64(0)] * self.array.ndim
        for own, axis in zip(grid, self.axes, strict=True):
            if axis is not None:
                at[axis] = own
        at[self.gathered] = np.clip(place, 0, self.array.shape[self.gathered] - 1)
        return self.array[tuple(at)]


def _anchor(memory: _Memory, name: str) -> Array:
    """Return what an attention of the program is of what is in memory."""
    operation = memory.definitions[name]
    operands = [memory.read(each.name) for each in operation.operands]
    return limit(operation.result, apply(operation, operands, memory.dims))


def _attention(memory: _Memory, kernel: FusedAttention) -> Sequence[Array | None]:
    anchors = {memory.definitions[name].op: _anchor(memory, name) for name in kernel.anchors}
    if "attention" not in anchors:
        return [None, anchors["attention_lse"]]
    o = anchors["attention"]
    if kernel.output is not None:
        names = INDICES[o.ndim]
        indices = dict(zip(names, np.indices(o.shape, sparse=True), strict=True))
        reads = {f"d{place}": memory.read(each.name) for place, each in enumerate(kernel.reads)}
        known = {param.name: np.int64(0) for param in kernel.output.params}  # sizes that none uses
        (o,) = memory.called(kernel.output, {**known, "o": o, **indices, **reads})
        o = np.broadcast_to(o, memory.extents(kernel.o))
    lse = [] if kernel.lse is None else [anchors["attention_lse"]]
    return [o, *lse]


def _gradients(memory: _Memory, kernel: FusedAttentionGrad) -> Sequence[Array | None]:
    by_side = {f"d{memory.definitions[name].op[-1]}": name for name in kernel.anchors}
    written: list[Array | None] = []
    for out in kernel.outs:
        array = _anchor(memory, by_side[out.side])
        axes = out.axes
        if array.ndim == 3:  # packed: the rows and heads of [batch, head, row, element]
            axes = tuple((None, 1, 0, 2)[axis] or 0 for axis in axes)
        written.append(array.transpose(axes))
    return written


_KERNELS: Mapping[type, Callable[[_Memory, Any], Sequence[Array | None]]] = {
    FusedGemm: _product,
    FusedConv: _by_function,
    FusedPool: _by_function,
    FusedScan: _scan,
    FusedSort: _sort,
    FusedMoeGate: _moe_gate,
    FusedGroupIds: _group_ids,
    FusedSample: _sample,
    FusedScatter: _scatter,
    FusedRows: _rows,
    FusedAttention: _attention,
    FusedAttentionGrad: _gradients,
}
