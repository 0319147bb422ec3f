# SPDX-License-Identifier: MIT
"""Two anchors as one: pairs, both computed by one kernel.

A family proposes them. A pair stays one if one kernel can write all that is stored of both
(:mod:`cklang.fusion.joint`), with rows as rows.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from cklang.errors import error
from cklang.fusion.flow import Flow
from cklang.fusion.joint import joined_roots
from cklang.fusion.kernel import Maker
from cklang.fusion.passes import Draft
from cklang.fusion.roots import Roots

Candidates = Callable[[Flow, Mapping[int, Collection[int]]], Iterator[tuple[int, int]]]


def paired(draft: Draft, propose: Candidates) -> Draft:
    """Return a draft with the graph in which pairs of anchors are one.

    ``propose`` yields what may be pairs, as (first, second), of a graph and the values that another
    kernel than their own needs, with the nodes that need them.
    """
    function = draft.outlined or draft.function
    graph = partial(Flow, function, draft.makers, unwritten=draft.unwritten)
    flow = graph()
    search = Roots(flow, draft.makers)
    roots = search.find()
    candidates = list(propose(flow, search.readers(search.demanded())))
    while chosen := _apart(candidates):
        joint = graph(pairs=chosen)
        joint_roots, refused = _roots_of_pairs(joint, draft.makers)
        if not refused:
            flow, roots = joint, joint_roots
            break
        candidates = [pair for pair in candidates if pair[1] not in refused]
    return replace(draft, flow=flow, roots=tuple(roots))


def _apart(candidates: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Return pairs without an anchor in common, first come first served."""
    chosen: dict[int, int] = {}
    for first, second in candidates:
        if not {first, second} & {*chosen, *chosen.values()}:
            chosen[first] = second
    return chosen


def _roots_of_pairs(flow: Flow, makers: Mapping[str, Maker]) -> tuple[list[int], set[int]]:
    """Return the roots of a graph, and the pairs whose results no one kernel writes.

    An operand that is seen with its axes exchanged would need a kernel of its own.
    """
    search = Roots(flow, makers)
    roots = search.find()
    anchors = set(flow.pairs.values())
    own: dict[int | None, set[int]] = {anchor: set() for anchor in anchors}
    needed: dict[int | None, set[int]] = {anchor: set() for anchor in anchors}
    for nodes, by_anchor in ((roots, own), (search.readers(search.demanded()), needed)):
        for node in nodes:
            by_anchor.get(flow.colour(node), set()).add(node)
    refused = {
        anchor
        for anchor in anchors
        if not needed[anchor] <= own[anchor]
        or any(_is_transposed(flow, root, makers) for root in own[anchor])
    }
    if refused:
        return roots, refused  # nothing tells what kernels of these roots would read
    kernels = Counter(flow.colour(first) for first, *_ in joined_roots(flow, roots, makers))
    return roots, {anchor for anchor in anchors if kernels[anchor] != 1}


def _is_transposed(flow: Flow, root: int, makers: Mapping[str, Maker]) -> bool:
    """Tell whether the kernel of a root computes the transpose of its product."""
    anchor = flow.colour(root)
    if anchor is None:
        raise error("Z002", what="a root of a pair has no anchor")
    return makers[flow.expect_operation(anchor).op].is_transposed(flow, root)
