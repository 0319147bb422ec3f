# SPDX-License-Identifier: MIT
"""Index arrays in host memory, checked before each launch of an attention that reads them.

A plan depends on the shapes of a call and not on these numbers, so a repeated call checks them too.
Those in a GPU's memory are trusted: reading them would make every call wait for the GPU.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cklang.device.arrays import Array
from cklang.families.attention.plan import FusedAttention
from cklang.families.index_arrays import HostList
from cklang.fusion.plan import View
from cklang.ir.attention import LENGTHS, PAGE_STARTS, PAGES, STARTS
from cklang.ir.attention_lists import Extents, check_lists
from cklang.ir.nodes import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLists:
    """The index arrays of one plan whose calls have them in host memory."""

    lists: tuple[HostList, ...]
    extents: Extents

    def check(self, addresses: Sequence[int]) -> None:
        """Check those of a call whose arguments have these addresses.

        Raises:
            CkValueError: A056, an element is out of its range.
        """
        values = {
            index_list.role: index_list.at(addresses[index_list.slot]) for index_list in self.lists
        }
        check_lists(values, self.names, self.extents)

    @property
    def names(self) -> dict[str, str]:
        """What the user calls each, by role."""
        return {index_list.role: index_list.name for index_list in self.lists}


def host_lists(
    kernel: FusedAttention, arrays: Mapping[str, Array], dims: Mapping[str, int]
) -> HostLists | None:
    """Return the index arrays that a kernel's launches read; None if it reads none."""
    names = {role: name for role, name in _lists_of(kernel).items() if name in arrays}
    if not names:
        return None
    slots = {name: slot for slot, name in enumerate(arrays)}
    q, k = kernel.q, kernel.k
    rows, keys, pages = (
        _extent(view, axis, dims) for view, axis in ((q, q.perm[2]), (k, k.perm[2]), (k, k.perm[0]))
    )
    return HostLists(
        lists=tuple(
            HostList.of(role, name, slots[name], arrays[name]) for role, name in names.items()
        ),
        extents=Extents(rows=rows, keys=keys, pages=pages),
    )


def _lists_of(kernel: FusedAttention) -> dict[str, str]:
    """Return the names of a kernel's index arrays by role."""
    starts = dict(zip(STARTS, kernel.starts, strict=False))
    others: dict[str, Value | None] = {
        LENGTHS[0]: kernel.lengths,
        PAGES[0]: kernel.pages,
        PAGE_STARTS[0]: kernel.page_starts,
    }
    values = starts | {role: value for role, value in others.items() if value is not None}
    return {role: value.name for role, value in values.items()}


def _extent(view: View, axis: int | None, dims: Mapping[str, int]) -> int:
    return 0 if axis is None else view.value.type.extents(dims)[axis]
