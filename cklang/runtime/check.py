# SPDX-License-Identifier: MIT
"""``op.check``: every mistake of a call at once, from arrays or from shapes and dtypes alone."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from cklang.codec import dtype_of
from cklang.device.device import target_of
from cklang.dims import is_integer
from cklang.display import ShownAsText
from cklang.errors import CkError, error
from cklang.runtime.bind import argument_mistakes, assigned, raise_all
from cklang.runtime.described_array import DescribedArray
from cklang.runtime.op_protocol import AnyOp
from cklang.runtime.planner import kernel_mistakes, memory_of
from cklang.runtime.results import targets_of
from cklang.selection.context import current, device_named
from cklang.types import DType, TensorType

_ADDRESSES = 1 << 48
"""How many bytes a process can address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(ShownAsText):
    """What :meth:`cklang.Op.check` says of a call."""

    op: str
    mistakes: tuple[CkError, ...]
    """In the order of the arguments; those of the program and its kernels come last."""

    @property
    def ok(self) -> bool:
        """Whether the call has no mistake."""
        return not self.mistakes

    def expect(self) -> None:
        """Raise the first mistake, with the others as its notes; return if there is none.

        Raises:
            CkError: The first mistake.
        """
        raise_all(self.mistakes)

    def __str__(self) -> str:
        return "\n\n".join([self._head, *map(str, self.mistakes)])

    @property
    def _head(self) -> str:
        count = len(self.mistakes)
        return f"{self.op}: {count or 'no'} mistake{'s' if count != 1 else ''}"

    def _repr_html_(self) -> str:
        """Show the mistakes as a list in a notebook."""
        head, *mistakes = (escape(part) for part in (self._head, *map(str, self.mistakes)))
        rows = "".join(f"<li><pre>{mistake}</pre></li>" for mistake in mistakes)
        return f"<p><b>{head}</b></p>{f'<ol>{rows}</ol>' if rows else ''}"


def check_call(
    op: AnyOp, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any, device: str | None
) -> Report:
    """Return all mistakes of a call; see :meth:`cklang.Op.check`."""
    program = op.program
    offered, mistakes = assigned(program.name, program.parameters, args, kwargs)
    arguments: dict[str, Any] = {}
    for place, (name, value) in enumerate(offered.items()):
        try:
            arguments[name] = _argument(name, value, place)
        except CkError as mistake:
            mistakes.append(mistake)
    mistakes += argument_mistakes(program.parameters, arguments)
    if not mistakes:
        mistakes += _mistakes_of_kernels(op, arguments, out, device)
    return Report(op=program.name, mistakes=tuple(mistakes))


def _mistakes_of_kernels(
    op: AnyOp, arguments: Mapping[str, Any], out: Any, device: str | None
) -> Sequence[CkError]:
    from cklang.runtime import plan_store

    kept = None
    try:
        binding = op._bound((), arguments)
        if out is None and all(
            isinstance(argument, DescribedArray) for argument in arguments.values()
        ):
            function = op.program.specialise(binding.dtypes, binding.consts, binding.dims)
            kept = plan_store.address_of_check(function, binding, device, op.request)
            if plan_store.is_right(kept):
                return ()
        outs = None if out is None else targets_of(binding, _out(out, len(arguments)))
        plan = op._planned(binding)
        spec = target_of(device_named(device, current())).spec
        memory = memory_of(plan, binding, outs)
        mistakes = kernel_mistakes(plan, binding, memory, spec, op.request)
    except CkError as mistake:
        return [mistake]
    if not mistakes:
        plan_store.note_right(kept)
    return mistakes


def _out(out: Any, first: int) -> Any:
    """Return ``out`` of a call, whose descriptions have the places from ``first`` on."""
    if isinstance(out, tuple) and not _is_description(out):
        return tuple(_argument("out", array, first + place) for place, array in enumerate(out))
    return _argument("out", out, first)


def _argument(name: str, value: Any, place: int) -> Any:
    """Return an argument of a call; for a description, an array without contents.

    Each ``place`` has addresses of its own.
    """
    if isinstance(value, DType):
        value = TensorType(dtype=value)
    if isinstance(value, TensorType):
        value = (value.shape, value.dtype)
    if not _is_description(value):
        return value
    shape, dtype, *rest = value
    shape = tuple(shape)
    strides = tuple(rest[0]) if rest else _packed(shape)
    numbers = [*shape, *strides]
    if not all(map(is_integer, numbers)) or len(strides) != len(shape) or min(shape, default=0) < 0:
        raise error("A071", name=name, value=value)
    pointer = (place + 1) * _ADDRESSES
    return DescribedArray(dtype=dtype_of(dtype), shape=shape, strides=strides, pointer=pointer)


def _is_description(value: Any) -> bool:
    """Tell (shape, dtype) and (shape, dtype, strides) from other arguments."""
    if not isinstance(value, tuple) or len(value) not in (2, 3):
        return False
    return isinstance(value[0], tuple | list) and isinstance(value[1], DType | str)


def _packed(shape: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the strides of an array without gaps; none for extents that are no numbers."""
    if not all(isinstance(extent, int) for extent in shape):
        return ()
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
