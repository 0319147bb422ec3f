# SPDX-License-Identifier: MIT
"""How many floating-point operations a node of a graph of aten ops takes.

A product of [M, K] by [K, N] takes 2 M N K, a convolution and an attention what their products
take; torch's formulas count them. Any other op that computes floats takes one for each element of
its largest operand or result.
"""

import math
from typing import Any

import torch
from torch.fx import Node
from torch.utils import flop_counter

from cklang.torch.backend.aten import FREE
from cklang.torch.backend.extents import hint_of

aten = torch.ops.aten

_UNCOUNTED = FREE | {
    aten.clone.default,
    aten._to_copy.default,
    torch.ops.prims.convert_element_type.default,
    aten.cat.default,
    aten.embedding.default,
    aten.index_select.default,
    aten.index.Tensor,
    aten.gather.default,
    aten.full.default,
    aten.full_like.default,
    aten.scalar_tensor.default,
    aten.zeros_like.default,
    aten.ones_like.default,
    aten.arange.start_step,
}
"""Ops that move or make numbers."""


_ATTENTION = {
    torch.ops.cklang_backend.attention.default: (0, 1, 1),
    torch.ops.cklang_backend.attention_gradient.default: (1, 3, 2),
}
"""The place of q among the arguments, and how many products have the heads of q, and of v."""


def flops(node: Node) -> int:
    """Return the floating-point operations of a node, for the sizes of the call that was traced."""
    if node.target in _UNCOUNTED:
        return 0
    if node.target in _ATTENTION:
        first, by_q, by_v = _ATTENTION[node.target]
        sides = node.args[first : first + 3]
        q, k, v = (_shape(side.meta["val"]) for side in sides)  # type: ignore[union-attr]
        return 2 * math.prod(q[:-1]) * k[-2] * (by_q * q[-1] + by_v * v[-1])
    formula = flop_counter.flop_registry.get(getattr(node.target, "overloadpacket", None))
    if formula is None:
        return _elements(node)
    arguments = torch.fx.map_arg((node.args, dict(node.kwargs)), _sized)
    args, kwargs = arguments
    return int(formula(*args, **kwargs, out_val=_sized(node)))


def _shape(tensor: Any) -> tuple[int, ...]:
    return tuple(map(hint_of, tensor.shape))


def _sized(node: Node) -> Any:
    """Return a tensor without memory that has the size of a node's in the call that was traced."""
    return torch.utils._pytree.tree_map(_meta, node.meta["val"])


def _meta(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.empty(_shape(value), dtype=value.dtype, device="meta")
    return hint_of(value) if isinstance(value, torch.SymInt) else value


def _elements(node: Node) -> int:
    tensors = [_sized(each) for each in (node, *node.all_input_nodes)]
    leaves = torch.utils._pytree.tree_leaves(tensors)
    floats = [
        leaf.numel()
        for leaf in leaves
        if isinstance(leaf, torch.Tensor) and leaf.dtype.is_floating_point
    ]
    return max(floats, default=0)
