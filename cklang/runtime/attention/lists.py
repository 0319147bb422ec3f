# SPDX-License-Identifier: MIT
"""Index arrays in host memory, checked before each launch of an attention that reads them.

A plan depends on the shapes of a call and not on these numbers, so a repeated call checks them too.
Those in a GPU's memory are trusted: reading them would make every call wait for the GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cklang.fusion.attention_plan import AttentionPlan, FusedAttention
from cklang.ir.attention import LENGTHS, PAGE_STARTS, PAGES, STARTS
from cklang.ir.attention_lists import Extents, check_lists
from cklang.ir.nodes import Value
from cklang.runtime import arrays
from cklang.runtime.arrays import HOST
from cklang.runtime.bind import Binding
from cklang.types import i32

__all__ = ["HostLists", "host_lists"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostList:
    """One index array of i32, as all calls of a plan have it."""

    role: str
    name: str
    slot: int
    """The place of its address among those of a call."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements."""


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
            each.role: arrays.view(addresses[each.slot], i32, each.shape, each.strides)
            for each in self.lists
        }
        check_lists(values, {each.role: each.name for each in self.lists}, self.extents)


def host_lists(plan: object, binding: Binding) -> HostLists | None:
    """Return the index arrays that a bound call's launches use; None if the host has none.

    Args:
        plan: What fusion made of the op.
        binding: The call.
    """
    if not isinstance(plan, AttentionPlan) or binding.place != HOST:
        return None
    names = _lists_of(plan.kernel)
    if not names:
        return None
    slots = {name: slot for slot, name in enumerate(binding.arrays)}
    q, k = plan.kernel.q, plan.kernel.k
    rows, keys, pages = (
        0 if axis is None else binding.arrays[view.value.name].shape[axis]
        for view, axis in ((q, q.perm[2]), (k, k.perm[2]), (k, k.perm[0]))
    )
    return HostLists(
        lists=tuple(
            HostList(
                role=role,
                name=name,
                slot=slots[name],
                shape=binding.arrays[name].shape,
                strides=binding.arrays[name].strides,
            )
            for role, name in names.items()
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
    given = starts | {role: value for role, value in others.items() if value is not None}
    return {role: value.name for role, value in given.items()}
