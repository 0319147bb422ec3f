# SPDX-License-Identifier: MIT
"""Where a faulty address lies among the tensors of a call."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cklang.errors import CkDeviceError

if TYPE_CHECKING:
    from cklang.device.arrays import Array
    from cklang.ir.nodes import Function
    from cklang.source import Span

_ADDRESS = re.compile(r"address 0x([0-9a-f]+)")
_NEAR = 1 << 26
"""Bytes: what lies farther from every tensor is not near any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """An argument or a result as the user knows it."""

    name: str
    dtype: str
    bits: int
    """Bits per element."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements."""
    span: Span | None = None
    """Where the op reads or makes it first."""

    @staticmethod
    def of(name: str, array: Array, span: Span | None = None) -> Tensor:
        """Describe an array of a call."""
        return Tensor(
            name=name,
            dtype=array.dtype.name,
            bits=array.dtype.bits,
            shape=array.shape,
            strides=array.strides,
            span=span,
        )

    def __str__(self) -> str:
        return f"{self.name} ({self.dtype}{list(self.shape)})"

    def index(self, byte: int) -> tuple[int, ...] | None:
        """Return the index of the element ``byte`` bytes from the first one; None if there is none.

        Example:
            >>> x = Tensor(name="x", dtype="f16", bits=16, shape=(4, 8), strides=(8, 1))
            >>> x.index(42)
            (2, 5)
        """
        left, index = byte * 8 // self.bits, [0] * len(self.shape)
        for axis in sorted(range(len(self.shape)), key=lambda axis: -abs(self.strides[axis])):
            step = self.strides[axis]
            index[axis] = left // step if step else 0
            left -= index[axis] * step
        inside = all(0 <= at < extent for at, extent in zip(index, self.shape, strict=True))
        return tuple(index) if inside and not left else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Where a tensor of a call is: bytes ``address + low`` up to ``address + high``."""

    tensor: Tensor
    address: int
    """Address of the first element."""
    low: int
    high: int

    def distance(self, address: int) -> int:
        """How many bytes an address is outside."""
        at = address - self.address
        return max(self.low - at, at - self.high + 1, 0)

    def describe(self, address: int) -> str:
        """Say where an address is, seen from here."""
        at = address - self.address
        if at < self.low:
            return f"{self.low - at} bytes before {self.tensor}"
        if at >= self.high:
            return f"{at - self.high} bytes behind the end of {self.tensor}"
        index = self.tensor.index(at)
        place = f"element {list(index)}" if index is not None else f"byte {at}"
        return f"{place} of {self.tensor}"


def tensor_at(fault: CkDeviceError, regions: Sequence[Region]) -> CkDeviceError:
    """Return a fault that says in which tensor, or how far from which, its address lies.

    It points to where the op uses the tensor. Faults without an address, and those far from every
    tensor, are returned as they are.
    """
    named = _ADDRESS.search("\n".join(fault.notes))
    if named is None or not regions:
        return fault
    address = int(named[1], 16)
    nearest = min(regions, key=lambda region: region.distance(address))
    if nearest.distance(address) > _NEAR:
        return fault
    notes = (*fault.notes, f"the address is {nearest.describe(address)}")
    at = fault.at or nearest.tensor.span
    return CkDeviceError(fault.code, fault.message, fault.hint, at, notes)


def first_uses(function: Function) -> dict[str, Span]:
    """Return where each value of a program is made or read first, by its name."""
    spans: dict[str, Span] = {}
    for operation in function.body:
        if operation.span is not None:
            for value in (operation.result, *operation.operands):
                spans.setdefault(value.name, operation.span)
    return spans
