# SPDX-License-Identifier: MIT
"""Evaluate a function of the mini-IR on NumPy arrays.

Each operation on floats is computed in float64, and its result is a number of its type, as kernels
hold it: f32 values are rounded to f32, a ``cast`` rounds to its dtype, both to nearest even and to
infinity beyond the range. So a comparison and a cast of one value agree. Integers are kept in
int64; i32 wraps at 32 bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cklang.errors import error
from cklang.ir.derive import derive
from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.numeric import Array
from cklang.ir.ops import OPS
from cklang.ir.rules import AttrKind
from cklang.ir.views import bounds_of
from cklang.types import (
    Blocks,
    Dim,
    Formula,
    Kind,
    Quotient,
    by_name,
    extent_value,
    f32,
    i32,
    plain_dims,
)

F32_OVERFLOW = float.fromhex("0x1.ffffffp127")
"""The least magnitude that rounds to an infinite f32."""


_COMPUTED = (Blocks, Formula, Quotient)
"""Extents that follow from those of dims."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Arrays bound to the parameters of a function: wide values by name, and each dim's extent."""

    values: dict[str, Array]
    dims: dict[Dim, int]


def evaluate(function: Function, arrays: Sequence[Any]) -> tuple[Array, ...]:
    """Return the results of ``function``.

    Args:
        function: A verified function.
        arrays: One array for each parameter, of its dtype and shape; numbers for rank 0.

    Returns:
        One array for each result, in the result's dtype.
    """
    bound = bind(function, arrays)
    values = dict(bound.values)
    with np.errstate(all="ignore"):
        _run(function, values, bound.dims)
    return tuple(from_wide(value, values[value.name]) for value in function.results)


def _run(function: Function, values: dict[str, Array], dims: dict[Dim, int]) -> None:
    """Add the value of each operation to ``values``, which has those of the parameters."""
    for operation in function.body:
        operands = [values[operand.name] for operand in operation.operands]
        result = apply(operation, operands, dims)
        values[operation.result.name] = limit(operation.result, result)


def _region(region: Function, arrays: Sequence[Array], dims: dict[Dim, int]) -> Array:
    """Return the result of a region for every element of arrays that broadcast."""
    pairs = zip(region.params, arrays, strict=True)
    values = {param.name: limit(param, array) for param, array in pairs}
    _run(region, values, dims)
    return values[region.results[0].name]


def bind(function: Function, arrays: Sequence[Any]) -> Bound:
    """Check arrays against the parameters; return them widened, with the extents of the dims."""
    if len(arrays) != len(function.params):
        raise error("I030", name=function.name, want=len(function.params), got=len(arrays))
    values: dict[str, Array] = {}
    dims: dict[Dim, int] = {}
    first: dict[Dim, str] = {}
    for param, argument in zip(function.params, arrays, strict=True):
        array = _array(param, argument)
        for axis, (extent, got) in enumerate(zip(param.type.shape, array.shape, strict=True)):
            if isinstance(extent, _COMPUTED):
                continue
            want = dims.setdefault(extent, got) if isinstance(extent, Dim) else extent
            if isinstance(extent, Dim):
                first.setdefault(extent, param.name)
            since = first[extent] if isinstance(extent, Dim) else param.name
            _same(param, axis, want, got, since)
        values[param.name] = to_wide(array)
    _bind_computed(function, arrays, dims)
    return Bound(values=values, dims=derive(function, dims))


def _bind_computed(function: Function, arrays: Sequence[Any], dims: dict[Dim, int]) -> None:
    """Check the extents that follow from dims, now that all arrays are read."""
    for param, argument in zip(function.params, arrays, strict=True):
        for axis, extent in enumerate(param.type.shape):
            if not isinstance(extent, _COMPUTED):
                continue
            got = np.shape(argument)[axis]
            try:
                want = extent_value(extent, by_name(dims))
            except KeyError:
                want = got
            dims[extent] = want
            names = ", ".join(sorted(map(str, plain_dims(extent))))
            _same(param, axis, want, got, f"the extent of {names}")


def _same(param: Value, axis: int, want: object, got: int, since: str) -> None:
    """Refuse an extent that is not what ``since`` made it."""
    if want != got:
        extent = param.type.shape[axis]
        raise error(
            "I032", name=param.name, axis=axis, extent=extent, want=want, got=got, first=since
        )


def _array(param: Value, argument: Any) -> Array:
    dtype = param.type.dtype.numpy
    # Packed and prepared matrices know what they stand for.
    argument = argument.unpack() if hasattr(argument, "unpack") else argument
    # A Python number has no width: it takes the parameter's.
    array = (
        np.asarray(argument, dtype)
        if isinstance(argument, (bool, int, float))
        else np.asarray(argument)
    )
    if array.dtype != dtype or array.ndim != param.type.rank:
        got = f"{array.dtype} of rank {array.ndim}"
        raise error("I031", name=param.name, want=param.type, got=got)
    return array


def to_wide(array: Array) -> Array:
    """Return an array of any dtype of the language in the dtype that the reference computes in."""
    if array.dtype == np.bool_:
        return array
    with np.errstate(invalid="ignore"):  # ml_dtypes reports each nan
        return array.astype(np.int64 if array.dtype.kind in "iu" else np.float64)


def from_wide(value: Value, array: Array) -> Array:
    """Return a computed array in the dtype of its value."""
    with np.errstate(all="ignore"):
        return array.astype(value.type.dtype.numpy)


def limit(value: Value, array: Array) -> Array:
    """Return computed numbers as their type holds them: those of f32 rounded to f32."""
    if value.type.dtype != f32:
        return array
    return array.astype(np.float32).astype(np.float64)


def apply(operation: Operation, operands: Sequence[Array], dims: dict[Dim, int]) -> Array:
    """Return the result of one operation on wide operands, not limited to its type's range."""
    attrs = {name: _attr(attr, dims) for name, attr in operation.attrs}
    for row in OPS[operation.op].attrs:
        if row.kind is AttrKind.BOUNDS:
            extents = bounds_of(operation, row.name)
            attrs[row.name] = [extent_value(extent, by_name(dims)) for extent in extents]
    if OPS[operation.op].shape.declared:
        attrs["shape"] = operation.result.type.extents(by_name(dims))
    result = np.asarray(OPS[operation.op].numpy(*operands, **attrs))
    dtype = operation.result.type.dtype
    if dtype.kind is Kind.BOOL:
        return result
    if result.dtype.kind == "f":
        return result.astype(np.float64)
    return (result.astype(np.int32) if dtype == i32 else result).astype(np.int64)


def _attr(attr: object, dims: dict[Dim, int]) -> Any:
    """Float attributes are f32 numbers, regions functions of arrays."""
    if isinstance(attr, Function):
        return lambda *arrays: _region(attr, arrays, dims)
    if not isinstance(attr, float):
        return attr
    with np.errstate(all="ignore"):
        return np.float64(np.float32(attr))
