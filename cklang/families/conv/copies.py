# SPDX-License-Identifier: MIT
"""The copies around a convolution whose channels are elsewhere than last in memory."""

from collections.abc import Mapping
from dataclasses import replace

from cklang.families.conv.plan import FusedConv
from cklang.families.layout_copy.plan import LayoutCopy, WithCopies, copied_in_order, copy_of
from cklang.families.tensor_layout import TensorLayout, refuse_negative, refuse_overlap
from cklang.fusion.plan import View


def insert_layout_copies(
    kernel: FusedConv, storage: Mapping[str, TensorLayout]
) -> WithCopies[FusedConv]:
    """Return a kernel with the copies that its program needs.

    A program needs them if the channels of a convolution are on another axis than the last.
    """
    if 0 in storage[kernel.result.name].shape:
        return WithCopies(kernel=kernel, storage=storage)
    layouts = dict(storage)
    origins: dict[str, str] = {}
    before: list[LayoutCopy] = []
    views = []
    for view in (kernel.a, kernel.b):
        copied = copied_in_order(view.value, view.perm, storage)
        if copied is not None:
            name = copied[0].name
            layouts[name], origins[name] = copied[1], view.value.name
            refuse_negative(storage[view.value.name])
            before.append(copy_of(layouts, view.value.name, name))
        views.append(view if copied is None else View(value=copied[0], perm=view.perm))
    after: list[LayoutCopy] = []
    result = kernel.result
    copied = copied_in_order(result, kernel.axes, storage)
    if copied is not None:
        name = copied[0].name
        layouts[name], origins[name] = copied[1], result.name
        refuse_overlap(storage[result.name])
        refuse_negative(storage[result.name])
        after.append(copy_of(layouts, name, result.name))
        result = copied[0]
    return WithCopies(
        kernel=replace(kernel, a=views[0], b=views[1], result=result),
        storage=layouts,
        before=tuple(dict.fromkeys(before)),
        after=tuple(after),
        origins=origins,
    )
