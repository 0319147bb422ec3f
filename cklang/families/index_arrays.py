# SPDX-License-Identifier: MIT
"""Index arrays in host memory, checked before each launch of a kernel that reads them.

A plan depends on the shapes of a call and not on these numbers, so a repeated call checks them too.
Those in a GPU's memory are trusted: reading them would make every call wait for the GPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cklang.device.arrays import Array
from cklang.ir.indices import check_indices
from cklang.ir.numeric import Array as Numbers

if TYPE_CHECKING:
    from cklang.families.protocol import HostCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class HostList:
    """One index array, as all calls of a plan have it."""

    role: str
    name: str
    slot: int
    """The place of its address among those of a call."""
    shape: tuple[int, ...]
    steps: tuple[int, ...]
    """The strides in bytes."""
    low: int
    """The first byte of it, from its address on; negative if a stride is."""
    size: int
    """All its bytes."""
    dtype: Any = np.int32

    @staticmethod
    def of(role: str, name: str, slot: int, array: Array) -> HostList:
        """Return an index array that lies as ``array`` does."""
        low, high = array.extent
        return HostList(
            role=role,
            name=name,
            slot=slot,
            shape=array.shape,
            steps=tuple(stride * array.dtype.bytes for stride in array.strides),
            low=low,
            size=high - low,
            dtype=array.dtype.numpy,
        )

    def at(self, address: int) -> Numbers:
        """Return its elements in a call that has it at ``address``."""
        if 0 in self.shape:
            return np.empty(self.shape, self.dtype)
        memory: Any = (ctypes.c_char * self.size).from_address(address + self.low)
        return np.ndarray(self.shape, self.dtype, memory, -self.low, self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostIndices:
    """The index arrays of one kernel, each with the extent of the axis that it indexes."""

    lists: tuple[tuple[HostList, int], ...]

    @classmethod
    def of(cls, name: str, arrays: Mapping[str, Array], extent: int) -> HostIndices:
        """Return one index array of a call's arguments, for an axis of so many elements."""
        return cls(lists=((HostList.of("", name, list(arrays).index(name), arrays[name]), extent),))

    @classmethod
    def joined(cls, *parts: HostIndices | None) -> HostIndices | None:
        """Return the arrays of several; None if there are none."""
        lists = tuple(index_list for part in parts if part is not None for index_list in part.lists)
        return cls(lists=lists) if lists else None

    def check(self, addresses: Sequence[int]) -> None:
        """Check those of a call whose arguments have these addresses.

        Raises:
            CkValueError: A056, an index is out of its range.
        """
        for indices, extent in self.lists:
            check_indices(indices.name, indices.at(addresses[indices.slot]), extent)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostChecks:
    """What several kernels check before a call launches."""

    checks: tuple[HostCheck, ...]

    def check(self, addresses: Sequence[int]) -> None:
        """Check a call whose arguments have these addresses."""
        for check in self.checks:
            check.check(addresses)
