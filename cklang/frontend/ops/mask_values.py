# SPDX-License-Identifier: MIT
"""``ck.mask_at``: the values of a mask of attention, as a tensor of the program."""

from typing import Any

import numpy as np

from cklang.frontend import emit
from cklang.frontend.intrinsics import function
from cklang.frontend.ops.indexing import taken_along
from cklang.frontend.ops.movement import reshape
from cklang.frontend.ops.regions import Reads, make_mask
from cklang.frontend.scope import Scope
from cklang.frontend.text import Located
from cklang.frontend.values import Item, Tensor, describe
from cklang.ir.attention import INDICES
from cklang.ir.nodes import Operation
from cklang.ir.numeric import Array
from cklang.types import i32

__all__ = ["mask_at"]


def _computed(mask: Any, **indices: Any) -> Array:
    from cklang.frontend.eager_attention import mask_function

    values = [np.asarray(indices[name]) for name in INDICES]
    shape = np.broadcast_shapes(*(value.shape for value in values))
    return np.broadcast_to(mask_function(mask)(*values), shape)


@function(
    "a mask of attention as a tensor of booleans",
    eager=_computed,
    example="""
    >>> i, j = np.arange(3)[:, None], np.arange(3)
    >>> ck.mask_at(ck.causal() & (lambda j: j != 1), b=0, h=0, i=i, j=j, q_len=3, k_len=3)
    array([[ True, False, False],
           [ True, False, False],
           [ True, False,  True]])
    """,
    takes_lambdas=True,
)
def mask_at(
    scope: Scope,
    node: Located,
    mask: Item,
    *,
    b: Item,
    h: Item,
    i: Item,
    j: Item,
    q_len: Item,
    k_len: Item,
) -> Tensor:
    """Return the booleans.

    Raises:
        CkTypeError: F092 to F094 for the mask, F066 for indices that are no i32.
    """
    values = [emit.number(scope, node, item) for item in (b, h, i, j, q_len, k_len)]
    tensors = [
        item if isinstance(item, Tensor) else emit.cast(scope, node, item, i32) for item in values
    ]
    for tensor in tensors:
        if tensor.dtype != i32:
            problem = f"an index is {describe(tensor)}"
            raise scope.error("F066", node, op="mask_at", problem=problem, advice="legal: i32")
    reads: Reads = {}
    region = make_mask(scope, node, mask, reads)
    known = dict(zip(INDICES, tensors, strict=True))
    known |= {param.name: _whole(value) for value, param in reads.items()}
    for operation in region.body:
        operands = [known[operand.name] for operand in operation.operands]
        known[operation.result.name] = _applied(scope, node, operation, operands)
    shape, _ = emit.common_shape(scope, node, tensors)
    result = known[region.results[0].name]
    return emit.broadcast_to(scope, node, result, shape)


def _whole(value: Any) -> Tensor:
    return Tensor.plain(value, [f"an axis of {value}"] * value.type.rank)


def _applied(scope: Scope, node: Located, operation: Operation, operands: list[Tensor]) -> Tensor:
    """Return what an operation on single numbers is on tensors."""
    if operation.op == "element":
        return _elements(scope, node, *operands)
    if operation.op == "constant":
        value = scope.unit.append("constant", attrs=dict(operation.attrs), span=scope.span(node))
        return Tensor.plain(value, ())
    return emit.pointwise(scope, node, operation.op, *operands, **dict(operation.attrs))


def _elements(scope: Scope, node: Located, tensor: Tensor, *indices: Tensor) -> Tensor:
    """Return a tensor at an index for each axis, each limited to it."""
    if not indices:
        return tensor
    if len(indices) == 1:
        return taken_along(scope, node, tensor, indices[0], 0)

    def computed(op: str, *items: Item) -> Tensor:
        return emit.pointwise(scope, node, op, *items)

    def limited(index: Tensor, extent: Item) -> Tensor:
        last = 0 if extent == 1 else computed("sub", extent, 1)
        return computed("maximum", computed("minimum", index, last), 0)

    own = map(limited, indices, tensor.shape)
    offset = next(own)
    for index, extent in zip(own, tensor.shape[1:], strict=True):
        offset = computed("add", computed("mul", offset, extent), index)
    flat = emit.expect_tensor(
        scope, node, "mask_at", reshape.emit(scope, node, {"x": tensor, "shape": (-1,)})
    )
    return taken_along(scope, node, flat, offset, 0)
