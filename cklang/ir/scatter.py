# SPDX-License-Identifier: MIT
"""The ops that write a tensor at indices: ``scatter`` and ``scatter_add``, the inverse of ``take``.

Operands are the indices, then the rows, whose shape is that of a ``take`` of the result at the
indices. ``scatter`` has a third, the tensor whose other elements stay; that of ``scatter_add`` may
be left out, and is 0 then. Rows are taken in order: of equal indices the last row stays, and sums
are added from the first to the last. Where ``unordered`` is 1, of equal indices any row may stay,
and sums may be added in any order. An index that is outside of its axis writes nothing.

``in_place`` is 1 where the result is written into the memory of the third operand, a parameter.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np

from cklang.errors import CkError, error
from cklang.ir.extents import EXTENT
from cklang.ir.indices import INDEX_DTYPES
from cklang.ir.nodes import Attr, Function, Operation, Value
from cklang.ir.numeric import Array
from cklang.ir.reductions import ROW_DTYPES, wrapped
from cklang.ir.rules import DTypeRule, Shape, ShapeRule
from cklang.source import Span
from cklang.types import DType, TensorType, bf16, f16, f32, i8, i32

SCATTER = "scatter"
SCATTER_ADD = "scatter_add"
"""The names of the ops."""

IN_PLACE = "in_place"
UNORDERED = "unordered"
"""Their attributes, beside the axis."""

MOST_AXES = 5
"""The axes of a result, at most."""

STORED = (f16, bf16, f32, i8, i32)
"""The dtypes of tensors that ``scatter`` writes."""

_OPERANDS = 3


def is_scatter(op: str) -> bool:
    """Tell whether an op writes at indices."""
    return op in (SCATTER, SCATTER_ADD)


def _rows(indices: Array, rows: Array, extent: int, axis: int) -> Iterator[tuple[int, Array]]:
    """Yield each index that is one of the axis, with its row."""
    first = np.moveaxis(
        rows.reshape((*rows.shape[:axis], indices.size, *rows.shape[axis + indices.ndim :])),
        axis,
        0,
    )
    for index, row in zip(indices.reshape(-1).tolist(), first, strict=True):
        if 0 <= index < extent:
            yield index, row


def scattered(
    indices: Array,
    rows: Array,
    base: Array,
    *,
    axis: int,
    shape: Sequence[int],
    in_place: int = 0,
    unordered: int = 0,
) -> Array:
    """Return ``base`` with rows written at indices of an axis, the last of equal ones.

    >>> rows = np.array([5, 6])
    >>> scattered(np.array([2, 2]), rows, np.zeros(3, int), axis=0, shape=(3,)).tolist()
    [0, 0, 6]
    """
    result = np.array(base)
    lines = np.moveaxis(result, axis, 0)
    for index, row in _rows(indices, rows, shape[axis], axis):
        lines[index] = row
    return result


def scattered_sum(
    indices: Array,
    rows: Array,
    base: Array | None = None,
    *,
    axis: int,
    shape: Sequence[int],
    in_place: int = 0,
    unordered: int = 0,
) -> Array:
    """Return ``base``, or zeros, to which rows are added at indices of an axis.

    >>> scattered_sum(np.array([2, 2]), np.array([5.0, 6.0]), axis=0, shape=(3,)).tolist()
    [0.0, 0.0, 11.0]
    """
    result = np.zeros(shape, rows.dtype) if base is None else np.array(base)
    lines = np.moveaxis(result, axis, 0)
    for index, row in _rows(indices, rows, shape[axis], axis):
        lines[index] += row
    return wrapped(result)


def in_place_results(function: Function) -> Mapping[str, str]:
    """Return the results that are written into the memory of a parameter, by name, with it."""
    updates = {step.result.name: step for step in function.body if _is_in_place(step)}
    if not updates:
        return {}
    definitions = function.definitions()
    params = {value.name for value in function.params}
    reads = (step.operands for step in function.body if step.op != EXTENT)
    uses = Counter(operand.name for operand in chain.from_iterable(reads))
    places: dict[str, str] = {}
    for result in function.results:
        name = _before_cast(result, definitions)
        if name in updates:
            base = updates[name].operands[-1]
            if base.name in params and base.type == result.type and uses[base.name] == 1:
                places[result.name] = base.name
    for operation in updates.values():
        name = operation.operands[-1].name
        if name not in places.values():
            raise error("I047", at=operation.span, name=name)
    return places


def _before_cast(result: Value, definitions: Mapping[str, Operation]) -> str:
    """Return the name of a value, or of the one that it is cast from."""
    operation = definitions.get(result.name)
    if operation is None or operation.op != "cast":
        return result.name
    return operation.operands[0].name


def _is_in_place(operation: Operation) -> bool:
    return is_scatter(operation.op) and operation.attr(IN_PLACE) == 1


def _shape(
    shapes: tuple[Shape, ...], attrs: Mapping[str, Attr], declared: Shape | None
) -> Shape | None:
    indices, rows, *base = shapes
    axis = attrs["axis"]
    if declared is None or not isinstance(axis, int) or not 0 <= axis < len(declared) <= MOST_AXES:
        return None
    taken = (*declared[:axis], *indices, *declared[axis + 1 :])
    return declared if rows == taken and all(shape == declared for shape in base) else None


def _same_dtype(dtypes: tuple[DType, ...], _attrs: Mapping[str, Attr]) -> DType | None:
    indices, rows, base = dtypes
    return base if rows == base and base in STORED and indices in INDEX_DTYPES else None


def _sum_dtype(dtypes: tuple[DType, ...], _attrs: Mapping[str, Attr]) -> DType | None:
    indices, *terms = dtypes
    if indices not in INDEX_DTYPES:
        return None
    if all(term == i32 for term in terms):
        return i32
    return f32 if all(term in ROW_DTYPES for term in terms) else None


def check(
    types: Sequence[TensorType], attrs: Mapping[str, Attr], at: Span | None
) -> Iterator[CkError]:
    """Yield what is wrong with an operation: nothing is in the place of its result."""
    in_place, unordered = attrs[IN_PLACE], attrs[UNORDERED]
    if in_place not in (0, 1) or (in_place and len(types) < _OPERANDS):
        yield error("I046", at=at, name=IN_PLACE, got=in_place)
    if unordered not in (0, 1):
        yield error("I046", at=at, name=UNORDERED, got=unordered)


SCATTER_SHAPE = ShapeRule(
    text="indices, rows and a tensor of the result's shape, in which the axes of the indices "
    "replace the axis `axis` of the rows",
    apply=_shape,
    declared=True,
)
SCATTER_DTYPE = DTypeRule(
    text="indices of i32 or i64; rows and a tensor of one dtype: f16, bf16, f32, i8 or i32",
    apply=_same_dtype,
)
SCATTER_ADD_DTYPE = DTypeRule(
    text="indices of i32 or i64; rows and a tensor of f16, bf16 or f32, which give f32, or of i32",
    apply=_sum_dtype,
)
