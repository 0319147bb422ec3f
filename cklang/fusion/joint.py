# SPDX-License-Identifier: MIT
"""Which roots one kernel writes: results of one epilogue share the product that they follow.

Roots of one anchor are one kernel unless

- its family's kernels have one result (``Maker.several``),
- its epilogue would read a value that it writes, such as ``h`` for ``h + h.T``, or a view of it,
- it would read more values than a kernel takes, counting the further results, or
- another kernel would have to run between them: one that reads a root and that another root reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush

from cklang.fusion.flow import Flow
from cklang.fusion.kernel import Epilogue, KernelMaker, Maker, partial_of
from cklang.fusion.plan import MAX_READS

Roots = tuple[int, ...]


def joined_roots(flow: Flow, roots: Sequence[int], makers: Mapping[str, Maker]) -> list[Roots]:
    """Return the roots of each kernel, in launch order.

    ``roots`` are all nodes that kernels write, each after those that it depends on.
    """
    kernels: list[Roots] = [(root,) for root in roots]
    if len({flow.colour(root) for root in roots}) == len(roots):
        return kernels
    before = _dependences(flow, roots)
    for root in roots:
        for kernel in kernels:
            if min(kernel) >= root or flow.colour(kernel[0]) != flow.colour(root):
                continue
            both = _ordered(flow, (*kernel, root))
            others = [nodes for nodes in kernels if nodes not in (kernel, (root,))]
            if _has_one_epilogue(flow, both, roots, makers) and _order(before, [*others, both]):
                kernels = [*others, both]
                break
    return _order(before, kernels)


def _ordered(flow: Flow, roots: Roots) -> Roots:
    """Return roots with that first whose stores are widest, as the kernel counts its columns.

    Numbers that serve many columns are last.
    """
    bits = {root: flow.value(root).type.dtype.bits for root in roots}
    numbers = {root: bool(partial_of(flow, root)) for root in roots}

    def order(root: int) -> tuple[object, ...]:
        return flow.orientation(root), numbers[root], bits[root], root

    return tuple(sorted(roots, key=order))


def _has_one_epilogue(
    flow: Flow, kernel: Roots, roots: Sequence[int], makers: Mapping[str, Maker]
) -> bool:
    """Tell whether one epilogue can compute all roots of ``kernel``."""
    walk = Epilogue(KernelMaker(flow, roots, makers), kernel[0], kernel[1:])
    if not makers[walk.anchor.op].several:
        return False
    walk.run()
    reads = walk.region.reads
    is_own = any(base in kernel for read in reads for base in flow.bases(flow.id(read.value)))
    return not is_own and len(reads) + walk.is_pair + len(kernel) - 1 <= MAX_READS


def _dependences(flow: Flow, roots: Sequence[int]) -> dict[int, list[int]]:
    """Return the roots that each root depends on directly."""
    before: dict[int, list[int]] = {}
    for root in roots:
        above = [other for other in roots if flow.depends(root, other)]
        passed = {other for between in above for other in before[between]}
        before[root] = [other for other in above if other not in passed]
    return before


def _order(before: Mapping[int, Sequence[int]], kernels: Sequence[Roots]) -> list[Roots]:
    """Return kernels in launch order; nothing if one would wait for itself."""
    kernel_of = {root: kernel for kernel in kernels for root in kernel}
    waits = TopologicalSorter(
        {
            kernel: {kernel_of[other] for root in kernel for other in before[root]} - {kernel}
            for kernel in kernels
        }
    )
    try:
        waits.prepare()
    except CycleError:
        return []
    order: list[Roots] = []
    ready: list[tuple[int, Roots]] = []
    while waits.is_active():
        for kernel in waits.get_ready():
            heappush(ready, (min(kernel), kernel))
        order.append(heappop(ready)[1])
        waits.done(order[-1])
    return order
