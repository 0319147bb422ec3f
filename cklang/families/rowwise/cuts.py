# SPDX-License-Identifier: MIT
"""Where the slice of an output is cut if a kernel would read too much.

One value of it is stored by a kernel of its own, which itself reads no more than a kernel can: the
one after which the rest reads least.
"""

from collections.abc import Callable, Collection, Sequence

from cklang.families.rowwise.host import MAX_READS
from cklang.families.rowwise.space import RowSpace, operands_of
from cklang.fusion.flow import Flow, Occurrence
from cklang.ir.ops import Kind
from cklang.types import bf16, f16, f32, i32

_STORED = (f32, f16, bf16, i32)
"""What kernels of rows write of what they compute."""


def best_cut(
    flow: Flow,
    space: RowSpace,
    uses: Sequence[Occurrence],
    leaves: Collection[Occurrence],
    may_store: Callable[[int], bool],
) -> int | None:
    """Return the node of a slice to store by itself; None if the slice reads little enough.

    None too if there is no such node: then a kernel reads too much, which is an error.

    ``uses`` are the slice, operands before users, the output last; ``leaves`` are what of it is in
    memory.
    """
    inside = set(uses)
    below = {
        use: tuple(operand for operand in operands_of(flow, use, space) if operand in inside)
        for use in uses
        if use not in leaves
    }
    own = {use: 1 << place for place, use in enumerate(uses) if _is_read(flow, use, leaves)}
    masks = _masks(uses, below, own)
    *inner, output = uses
    if masks[output].bit_count() <= MAX_READS:
        return None
    candidates = [
        use
        for use in inner
        if use not in leaves
        and 1 < masks[use].bit_count() <= MAX_READS
        and flow.kind(use.node) in (Kind.POINTWISE, Kind.CAST)
        and flow.value(use.node).type.dtype in _STORED
        and may_store(use.node)
    ]

    def rest(use: Occurrence) -> tuple[int, int]:
        stored = {**own, use: 1 << len(uses)}
        cut = {**below, use: ()}
        return _masks(uses, cut, stored)[output].bit_count(), flow.value(use.node).type.rank

    best = min(candidates, key=rest, default=None)
    return None if best is None else best.node


def _is_read(flow: Flow, use: Occurrence, leaves: Collection[Occurrence]) -> bool:
    """Tell whether a kernel needs one of its places for a read for it."""
    # An index is a read without memory, and an axis that is read at indices takes a place too.
    return use in leaves or flow.kind(use.node) in (Kind.INDEX, Kind.GATHER)


def _masks(
    uses: Sequence[Occurrence],
    below: dict[Occurrence, tuple[Occurrence, ...]],
    own: dict[Occurrence, int],
) -> dict[Occurrence, int]:
    """Return for each use a bit for each read below it."""
    masks: dict[Occurrence, int] = {}
    for use in uses:
        mask = own.get(use, 0)
        for operand in below.get(use, ()):
            mask |= masks.get(operand, 0)
        masks[use] = mask
    return masks
