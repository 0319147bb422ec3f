# SPDX-License-Identifier: MIT
"""Inductor's pointwise operations as operations of the IR.

Inductor computes narrow floats in f32 and rounds what it stores; so do kernels.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import torch
from torch._inductor.ops_handler import DefaultHandler

from cklang.torch.backend.emitter import Emitter, Scalar, Tensor, dtype_of
from cklang.torch.backend.extents import Unsupported
from cklang.types import DType, bool_, f32, i32, i64

Item = Tensor | Scalar

_SAME = (
    *("abs", "neg", "exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "rsqrt"),
    *("reciprocal", "tanh", "erf", "sigmoid", "relu", "floor", "ceil", "round", "trunc", "sign"),
    *("square", "add", "sub", "mul", "minimum", "maximum", "pow", "isnan"),
)
"""Operations that have the same name in the IR."""

_NAMES: Mapping[str, str] = MappingProxyType({**{name: name for name in _SAME}, "truediv": "div"})
_COMPARISONS = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})
_LOGIC = frozenset({"logical_and", "logical_or", "logical_xor", "logical_not"})
_BITS: Mapping[str, str] = MappingProxyType(
    {"bitwise_and": "logical_and", "bitwise_or": "logical_or", "bitwise_not": "logical_not"}
)


class Pointwise(DefaultHandler):
    """Appends what the body of a loop computes to a program."""

    def __init__(self, to: Emitter, load: Callable[[str, Any], Tensor]) -> None:
        """Make the handler."""
        self._to = to
        self._load = load

    def load(self, name: str, index: Any) -> Tensor:
        """Return elements of a buffer, floats in f32."""
        return self._to.wide(self._load(name, index))

    def constant(self, value: Scalar, dtype: torch.dtype) -> Item:
        """Return a number."""
        if dtype == torch.bool:
            return bool(value)
        return float(value) if dtype.is_floating_point else int(value)

    def to_dtype(
        self,
        x: Item,
        dtype: torch.dtype,
        src_dtype: torch.dtype | None = None,
        use_compute_types: bool = True,
    ) -> Item:
        """Convert; a float stays in f32 unless Inductor asks for the rounding."""
        del src_dtype
        if not isinstance(x, Tensor):
            return self.constant(x, dtype)
        if not dtype.is_floating_point or not use_compute_types:
            return self._to.wide(_in(self._to, x, _own(dtype)))
        return _in(self._to, x, f32)

    def where(self, condition: Item, x: Item, y: Item) -> Tensor:
        """Select."""
        if not isinstance(condition, Tensor):
            raise Unsupported("its condition is a number")
        condition = _in(self._to, condition, bool_)
        operands = _alike(self._to, (x, y))
        if not any(isinstance(operand, Tensor) for operand in operands):
            number = operands[0]
            dtype = f32 if any(isinstance(operand, float) for operand in operands) else i32
            operands[0] = Tensor(self._to.constant(number, dtype), ())  # type: ignore[arg-type]
        return self._to.pointwise("where", [condition, *operands])

    def isinf(self, x: Item) -> Tensor:
        """Tell where a number is infinite."""
        return self._applied("eq", [self._applied("abs", [x]), math.inf])

    def fma(self, x: Item, y: Item, z: Item) -> Tensor:
        """Return x y + z."""
        return self._applied("add", [self._applied("mul", [x, y]), z])

    def identity(self, x: Item) -> Item:
        """Return it."""
        return x

    def _applied(self, op: str, items: list[Item]) -> Tensor:
        operands = _alike(self._to, items)
        if not any(isinstance(operand, Tensor) for operand in operands):
            raise Unsupported(f"{op} of numbers alone")
        return self._to.pointwise(op, operands)

    def _default(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        operands: list[Item] = [*args, *kwargs.values()]
        if name in _COMPARISONS:
            return self._applied(name, operands)
        is_bool = all(isinstance(operand, bool) or _dtype(operand) == bool_ for operand in operands)
        logic = _BITS.get(name) if is_bool else name if name in _LOGIC else None
        if logic is not None:
            booleans = [
                _in(self._to, operand, bool_) for operand in operands if isinstance(operand, Tensor)
            ]
            if len(booleans) != len(operands):
                raise Unsupported(f"{name} of a number")
            return self._to.pointwise(logic, booleans)
        if name not in _NAMES or is_bool:
            raise Unsupported(f"epilogues have no {name}")
        return self._applied(_NAMES[name], operands)


def _dtype(item: Item) -> DType | None:
    return item.dtype if isinstance(item, Tensor) else None


def _in(to: Emitter, item: Any, dtype: DType) -> Tensor:
    tensor: Tensor = item
    return replace(tensor, value=to.cast(tensor.value, dtype))


def _own(dtype: torch.dtype) -> DType:
    own = dtype_of(dtype)
    if own == i64:
        raise Unsupported("epilogues compute no int64")
    return own


def _alike(to: Emitter, items: Any) -> list[Item]:
    """Return operands in the dtype in which they are computed together."""
    is_float = any(isinstance(item, float) or _dtype(item) == f32 for item in items)
    if i64 in {_dtype(item) for item in items}:
        raise Unsupported("epilogues compute no int64")
    dtype = f32 if is_float else i32
    return [_in(to, item, dtype) if isinstance(item, Tensor) else item for item in items]
