# SPDX-License-Identifier: MIT
"""What expressions of a program are worth while it becomes IR: tensors, and Python constants."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar, TypeAlias

from cklang.frontend.intrinsics import Intrinsic
from cklang.ir.nodes import Value
from cklang.source import Span
from cklang.types import Dim, DType, TensorType


class Described:
    """An item that names itself in messages, so that this module need not know its class."""

    __slots__ = ()

    def described(self) -> str:
        """Return how messages call it."""
        raise NotImplementedError


class Helper(Described):
    """What ``@ck.fn`` makes: the base class by which modules below its own know it."""

    __slots__ = ()

    is_composite: ClassVar[bool] = False
    """Whether it is a function of the language itself."""

    @property
    def name(self) -> str:
        """Its name."""
        raise NotImplementedError

    @property
    def signature(self) -> inspect.Signature:
        """Its parameters."""
        raise NotImplementedError

    @property
    def place(self) -> Span:
        """Where it is defined."""
        raise NotImplementedError


class OpProgram(Described):
    """What ``@ck.op`` reads: the base class by which modules below its own know it."""

    __slots__ = ()

    definition: Any
    """Its :class:`cklang.frontend.helper.Definition`, by which another op inlines it."""

    @property
    def place(self) -> Span:
        """Where it is defined."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart(Described):
    """``op.apart`` in a program: a call of it computes the op in kernels of its own."""

    op: OpProgram

    def described(self) -> str:
        """Return how messages call it."""
        return f"{self.op.described()}, apart"


def program_of(value: object) -> OpProgram | None:
    """Return the program of an op, or None for anything else."""
    # The runtime's Op holds its Program.
    program = getattr(value, "program", value)
    return program if isinstance(program, OpProgram) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor(Described):
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

    def described(self) -> str:
        """Return how messages call it."""
        return f"a tensor {self.type}" if self.shape else f"a scalar {self.type}"


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
    if isinstance(item, Described):
        return item.described()
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
