# SPDX-License-Identifier: MIT
"""Operands whose heads are not contiguous: how a kernel may read them, or copies for it.

A kernel reads the elements of a head of q and k side by side; of v, either these or the keys. What
the program transposes and no kernel reads as it lies is copied before the attention; an array that
only its strides make so is refused, as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from cklang.families.attention.plan import FusedAttention
from cklang.families.attention.problem import AttentionCase, case_of, viewed
from cklang.families.attention.space import widest
from cklang.families.attention.transposed_v_rules import ELEMENT_BYTES
from cklang.families.layout_copy.plan import LayoutCopy, WithCopies, copied_in_order, copy_of
from cklang.families.tensor_layout import TensorLayout, refuse_negative
from cklang.fusion.plan import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """One way to read the operands of an attention."""

    placed: WithCopies[FusedAttention]
    transposed_v: bool
    """Whether v is read with its keys contiguous."""

    def case(self, dims: Mapping[str, int]) -> AttentionCase:
        """Return the problem of the kernel."""
        placed = self.placed
        return case_of(placed.kernel, placed.storage, dims, transposed_v=self.transposed_v)

    @property
    def as_written(self) -> Placement:
        """The same with the score function that the program has."""
        return replace(self, placed=replace(self.placed, kernel=self.placed.kernel.as_written))


def placements(
    kernel: FusedAttention, layouts: Mapping[str, TensorLayout]
) -> tuple[Placement, ...]:
    """Return the ways to read an attention's operands, the one without a copy of v first."""
    lies = viewed(kernel.v, layouts)
    if not _keys_are_contiguous(kernel, lies):
        return (Placement(placed=insert_head_copies(kernel, layouts), transposed_v=False),)
    direct = Placement(placed=insert_head_copies(kernel, layouts, "qk"), transposed_v=True)
    if copied_in_order(kernel.v.value, kernel.v.perm, layouts) is None:
        return (direct,)
    copied = Placement(placed=insert_head_copies(kernel, layouts), transposed_v=False)
    # Accesses that are narrower than the widest take longer than a copy.
    is_widest = lies.shape[-2] % widest(lies.dtype) == 0
    return (direct, copied) if is_widest else (copied,)


def _keys_are_contiguous(kernel: FusedAttention, v: TensorLayout) -> bool:
    """Whether a kernel may read the keys of v side by side: no sequence ends among them."""
    *_, keys, width = v.shape
    by_key, by_element = v.strides[-2:]
    own_lengths = kernel.starts or kernel.pages is not None or kernel.lengths is not None
    turned = keys > 1 and width > 1 and by_key == 1 and by_element > 1
    return turned and not own_lengths and v.dtype.bytes == ELEMENT_BYTES


def insert_head_copies(
    kernel: FusedAttention, layouts: Mapping[str, TensorLayout], names: Iterable[str] = "qkv"
) -> WithCopies[FusedAttention]:
    """Return an attention with the copies that its operands need; pages of a cache are not copied.

    ``names`` are the operands that may be copied.
    """
    storage, origins = dict(layouts), dict[str, str]()
    before: list[LayoutCopy] = []
    copies: dict[str, Any] = {}
    for name in "q" if kernel.pages is not None else names:
        view: View = getattr(kernel, name)
        copied = copied_in_order(view.value, view.perm, layouts)
        if copied is None:
            continue
        value, layout = copied
        refuse_negative(layouts[view.value.name])
        storage[value.name], origins[value.name] = layout, view.value.name
        before.append(copy_of(storage, view.value.name, value.name))
        copies[name] = View(value=value, perm=view.perm)
    return WithCopies(
        kernel=replace(kernel, **copies) if copies else kernel,
        storage=storage,
        before=tuple(dict.fromkeys(before)),
        origins=origins,
    )
