# SPDX-License-Identifier: MIT
"""What expressions of a program are worth while it becomes IR: tensors, and Python constants."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

from cklang.frontend.functions import Intrinsic
from cklang.ir.nodes import Value
from cklang.types import Dim, DType, TensorType

if TYPE_CHECKING:
    from cklang.frontend.scope import Scope

__all__ = [
    "Captured",
    "Closure",
    "Item",
    "Number",
    "Tensor",
    "describe",
    "has_tensor",
    "is_number",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A value of the IR, seen in ``shape``: axis i of the value is axis ``axes[i]`` of the shape.

    The other axes have extent 1; they come from ``x[:, None]`` and are put into the IR only when
    the tensor meets another one. ``origins`` says where each axis came from, for messages.
    """

    value: Value
    shape: tuple[Dim | int, ...]
    axes: tuple[int, ...]
    origins: tuple[str, ...]

    @classmethod
    def plain(cls, value: Value, origins: Sequence[str]) -> Tensor:
        """Return ``value`` as it is."""
        shape = value.type.shape
        return cls(value=value, shape=shape, axes=tuple(range(len(shape))), origins=tuple(origins))

    @property
    def dtype(self) -> DType:
        """Its element type."""
        return self.value.type.dtype

    @property
    def type(self) -> TensorType:
        """Its type as the program sees it."""
        return TensorType(dtype=self.dtype, shape=self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Closure:
    """A lambda in an argument, and the scope whose names it sees."""

    node: ast.Lambda
    scope: Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """A tensor of ``scope`` as a lambda in it sees it: something to be read at indices."""

    tensor: Tensor
    scope: Scope


Item: TypeAlias = object
"""A :class:`Tensor`, a constant, a function, or a tuple of items."""

Number = bool | int | float
"""The constants that may stand where a tensor may."""


def is_number(item: Item) -> bool:
    """Whether ``item`` is a constant that may stand where a tensor may."""
    return isinstance(item, Number)


def has_tensor(item: Item) -> bool:
    """Whether ``item`` is a tensor or a tuple with one in it."""
    if isinstance(item, tuple):
        return any(has_tensor(part) for part in item)
    return isinstance(item, Tensor)


def describe(item: Item) -> str:
    """Name ``item`` in a message."""
    if isinstance(item, Tensor):
        return f"a tensor {item.type}" if item.shape else f"a scalar {item.type}"
    if isinstance(item, Captured):
        return f"the whole tensor {item.tensor.type}"
    if isinstance(item, Closure):
        return "a lambda"
    return _other(item)


def _other(item: Item) -> str:
    from cklang.frontend.helper import Fn

    if isinstance(item, Fn):
        return f"the helper {item.definition.name}"
    if isinstance(item, Intrinsic):
        return f"the function ck.{item.name}"
    if isinstance(item, ModuleType):
        return f"the module {item.__name__}"
    if isinstance(item, Dim):
        return f"the dim {item}"
    if isinstance(item, DType):
        return f"the dtype {item}"
    if isinstance(item, tuple):
        return "a tuple"
    if callable(item):
        return f"the function {getattr(item, '__name__', item)}"
    return f"the constant {item!r}"
