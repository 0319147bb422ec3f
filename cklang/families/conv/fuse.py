# SPDX-License-Identifier: MIT
"""How fusion makes the kernel of a convolution."""

from collections.abc import Mapping
from types import MappingProxyType

from cklang.families.conv.plan import FusedConv
from cklang.fusion.kernel import Epilogue, KernelMaker, Maker, spans_of
from cklang.fusion.plan import View
from cklang.ir.windows import DIRECTIONS


def convolution(maker: KernelMaker, walk: Epilogue) -> FusedConv:
    """Return the kernel of a root whose anchor is a convolution."""
    anchor = walk.anchor
    axes = maker.flow.orientation(walk.root)
    order = tuple(axes.index(axis) for axis in range(anchor.result.type.rank))
    stored = (maker.stored(walk.colour, index) for index in (0, 1))
    left, right = (View(value=value, perm=perm) for value, perm in stored)
    epilogue = walk.run()
    return FusedConv(
        name=maker.flow.function.name,
        operation=anchor,
        a=left,
        b=right,
        epilogue=epilogue,
        reads=walk.reads(order),
        result=maker.flow.value(walk.root),
        axes=order,
        spans=spans_of([anchor, *epilogue.body]),
    )


MAKERS: Mapping[str, Maker] = MappingProxyType(
    dict.fromkeys(DIRECTIONS, Maker(make=convolution, epilogue=True))
)
"""The anchors of convolutions, by op."""
