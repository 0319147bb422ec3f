# SPDX-License-Identifier: MIT
"""Which products of one left operand are a pair, which one kernel computes and joins.

The gate of a SwiGLU is one: ``ck.silu(x @ g.T) * (x @ u.T)``. The first product is computed by the
kernel of the second if

- both have the same left operand, which is stored, and different right operands of one dtype and
  shape, which are stored too,
- what follows the first is needed by kernels of the second alone, and
- neither follows from the other.

Whether a kernel serves the pair depends on the layouts of a call: the family launches two products
where none does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cklang.fusion.flow import Flow

__all__ = ["pairs_of"]

_OP = "gemm"


def pairs_of(
    flow: Flow, demanded: Collection[int], readers: Mapping[int, Collection[int]]
) -> dict[int, int]:
    """Return the first product of each pair with the second one, whose kernel computes it.

    Args:
        flow: The graph of the function.
        demanded: What is stored in any case: results, and operands of anchors.
        readers: The values that another kernel than their own needs, with the nodes that need them.
    """
    pairs: dict[int, int] = {}
    for first in sorted({colour for node in readers if (colour := flow.colour(node)) is not None}):
        second = _only_reader(flow, first, demanded, readers)
        if second is None or {first, second} & {*pairs, *pairs.values()}:
            continue
        if _is_pair(flow, first, second):
            pairs[first] = second
    return pairs


def _only_reader(
    flow: Flow, first: int, demanded: Collection[int], readers: Mapping[int, Collection[int]]
) -> int | None:
    """Return the anchor whose kernels alone need what follows ``first``."""
    if any(flow.colour(node) == first for node in demanded):
        return None
    needed = (nodes for value, nodes in readers.items() if flow.colour(value) == first)
    colours = {flow.colour(node) for nodes in needed for node in nodes}
    return colours.pop() if len(colours) == 1 else None


def _is_pair(flow: Flow, first: int, second: int) -> bool:
    """Tell whether two anchors are products of one left operand."""
    one, other = flow.expect_operation(first), flow.expect_operation(second)
    if one.op != _OP or other.op != _OP or one.result.type != other.result.type:
        return False
    (left, *right), (same, *others) = flow.operands(first), flow.operands(second)
    dtypes = {flow.value(node).type.dtype for node in (*right, *others)}
    if left != same or right == others or len(dtypes) != 1 or first in flow.ancestors(second):
        return False
    return not any(flow.is_computed(node) for node in (left, *right, *others))
