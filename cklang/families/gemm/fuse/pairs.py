# SPDX-License-Identifier: MIT
"""Which products of one left operand are a pair, which one kernel computes and joins.

The gate of a SwiGLU is one: ``ck.silu(x @ g.T) * (x @ u.T)``. The first product is computed by the
kernel of the second if

- both have the same left operand, which is stored or read at indices, and different right operands
  of one dtype and shape, which are stored,
- what follows the second needs what follows the first, and not the other way round, and
- one kernel can write all that is stored of both (:mod:`cklang.fusion.joint`), with rows as rows.

Whether a kernel serves the pair depends on the layouts of a call: the family launches two products
where none does.
"""

from collections.abc import Collection, Iterator, Mapping

from cklang.fusion.flow import Flow
from cklang.ir.grouped import GROUPED_GEMM

PRODUCTS = ("gemm", GROUPED_GEMM)
"""The ops of products that may be pairs."""


def pairs_of(flow: Flow, readers: Mapping[int, Collection[int]]) -> Iterator[tuple[int, int]]:
    """Yield products that may be pairs, as (first, second), in the function's order.

    ``readers`` are the values that another kernel than their own needs, with the nodes that need
    them.
    """
    colours = {
        (flow.colour(value), flow.colour(node))
        for value, nodes in readers.items()
        for node in nodes
    }
    known = sorted((a, b) for a, b in colours if a is not None and b is not None)
    yield from (pair for pair in known if _is_pair(flow, *pair))


def _is_pair(flow: Flow, first: int, second: int) -> bool:
    """Tell whether two anchors are products of one left operand."""
    one, other = flow.expect_operation(first), flow.expect_operation(second)
    if one.op not in PRODUCTS or other.op != one.op or one.result.type != other.result.type:
        return False
    (left, right, *ends), (same, other_right, *other_ends) = map(flow.operands, (first, second))
    dtypes = {flow.value(node).type.dtype for node in (right, other_right)}
    if (
        (left, ends) != (same, other_ends)
        or right == other_right
        or len(dtypes) != 1
        or flow.depends(second, first)
    ):
        return False
    known = () if flow.is_gathered(left) else (left,)
    return not any(flow.is_computed(node) for node in (*known, right, other_right))
