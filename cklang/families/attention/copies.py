# SPDX-License-Identifier: MIT
"""Copies of q, k and v whose heads are not contiguous because the program transposes them.

A kernel reads the elements of a head side by side. ``v.mT`` of a v whose keys are contiguous is
copied before the attention; an array that only its strides make so is refused, as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cklang.families.attention.plan import FusedAttention
from cklang.families.gemm.layout import refuse_negative
from cklang.families.layout_copy.plan import LayoutCopy, WithCopies, copied_in_order, copy_of
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.plan import View

__all__ = ["insert_head_copies"]


def insert_head_copies(
    kernel: FusedAttention, layouts: Mapping[str, TensorLayout]
) -> WithCopies[FusedAttention]:
    """Return an attention with the copies that its operands need; pages of a cache are not copied.

    Args:
        kernel: The attention.
        layouts: How each value lies in memory, by name.

    Raises:
        CkValueError: A035, what is to be copied has a negative stride.
    """
    storage, origins = dict(layouts), dict[str, str]()
    before: list[LayoutCopy] = []
    copies: dict[str, Any] = {}
    names = ("q",) if kernel.pages is not None else ("q", "k", "v")
    for name in names:
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
