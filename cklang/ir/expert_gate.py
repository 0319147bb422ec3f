# SPDX-License-Identifier: MIT
"""The ops ``moe_weights`` and ``moe_indices``: which experts a token goes to, and with what weight.

Along the last axis, each element of x is the logit of an expert. Its *score* is the softmax of the
logits, or the sigmoid of its own. The ``count`` experts of the greatest scores are chosen, those
of greater scores first, and of equal ones the lowest index. An operand ``bias`` is added to the
scores for this choice alone. Without one, logits decide, which are in the order of the scores.

Experts may be in ``groups`` of neighbours; ``kept`` of them are allowed: those of the greatest
expert or, with a bias, of the greatest sum of two. As in torch, nan is greater than all numbers.

The weights are the scores of the chosen experts, divided by their sum if ``renormalised``, times
``scale``.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cklang.ir.nodes import Attr
from cklang.ir.numeric import Array
from cklang.ir.order import argsorted
from cklang.ir.reductions import MOST_AXES, ROW_DTYPES
from cklang.ir.rules import AttrKind, DTypeRule, Shape, ShapeRule
from cklang.types import DType, Extent

MOE_WEIGHTS, MOE_INDICES = "moe_weights", "moe_indices"
"""The names of the ops."""

ATTRS: Mapping[str, AttrKind] = {
    "count": AttrKind.INT,
    "groups": AttrKind.INT,
    "kept": AttrKind.INT,
    "renormalised": AttrKind.INT,
    "scale": AttrKind.FLOAT,
    "sigmoid": AttrKind.INT,
}
"""The attributes of both."""

LEAST_SUM = 1e-20
"""Added to the sum by which weights are divided."""


def scores(x: Array, sigmoid: int) -> Array:
    """Return the score of each expert."""
    with np.errstate(over="ignore", invalid="ignore"):
        powers = np.exp(-x if sigmoid else x - x.max(axis=-1, keepdims=True))
        total = powers.sum(axis=-1, keepdims=True)
        result: Array = 1.0 / (1.0 + powers) if sigmoid else powers / total
    return result


def chosen(keys: Array, count: int, groups: int, kept: int, *, of_two: bool) -> Array:
    """Return the experts of the greatest keys, in order.

    Args:
        keys: What decides.
        count: How many are chosen.
        groups: In how many groups of neighbours they are.
        kept: How many groups are allowed.
        of_two: Whether the two greatest keys of a group decide, not the greatest alone.

    Example:
        >>> chosen(np.array([1.0, 9.0, 7.0, 8.0]), 2, 2, 1, of_two=True).tolist()
        [3, 2]
    """
    order = argsorted(keys, -1, 0, 1)
    if kept < groups:
        split = keys.reshape(*keys.shape[:-1], groups, -1)
        best = np.take_along_axis(split, argsorted(split, -1, 1 + of_two, 1), -1).sum(axis=-1)
        allowed = np.zeros(best.shape, np.bool_)
        np.put_along_axis(allowed, argsorted(best, -1, kept, 1), True, -1)
        barred = ~np.repeat(allowed, split.shape[-1], axis=-1)
        last = np.argsort(np.take_along_axis(barred, order, -1), axis=-1, kind="stable")
        order = np.take_along_axis(order, last, -1)
    return order[..., :count]


def _routed(
    x: Array,
    bias: Array | None = None,
    *,
    count: int,
    groups: int,
    kept: int,
    renormalised: int,
    scale: float,
    sigmoid: int,
) -> tuple[Array, Array]:
    """Return the weights of the experts of each token, and the experts."""
    expert_scores = scores(x, sigmoid)
    keys = x if bias is None else expert_scores + bias
    experts = chosen(keys, count, groups, kept, of_two=bias is not None)
    result = np.take_along_axis(expert_scores, experts, -1)
    if renormalised:
        result = result / (result.sum(axis=-1, keepdims=True) + LEAST_SUM)
    return result * scale, experts


def weights(*operands: Any, **attrs: Any) -> Array:
    """Return the weights of the experts of each token; ``attrs`` are :data:`ATTRS`."""
    return _routed(*operands, **attrs)[0]


def indices(*operands: Any, **attrs: Any) -> Array:
    """Return the experts of each token."""
    return _routed(*operands, **attrs)[1]


def _shape(
    shapes: tuple[Shape, ...], attrs: Mapping[str, Attr], _declared: Shape | None
) -> Shape | None:
    shape, *biases = shapes
    count, groups, kept = (int(str(attrs[name])) for name in ("count", "groups", "kept"))
    if not 1 <= len(shape) <= MOST_AXES or any(bias != shape[-1:] for bias in biases):
        return None
    return (*shape[:-1], count) if _is_choice(shape[-1], count, groups, kept) else None


def _is_choice(extent: Extent, count: int, groups: int, kept: int) -> bool:
    """Tell whether so many experts can be chosen."""
    if count < 1 or not 1 <= kept <= groups:
        return False
    if not isinstance(extent, int):
        return groups == 1
    return extent % groups == 0 and count <= extent // groups * kept


MOE_SHAPE = ShapeRule(
    text="one to 5 axes, the last one of experts, which `groups` divides if it is not 1; a bias "
    "has that axis alone; `count` experts are in the `kept` groups",
    apply=_shape,
)


def dtype_rule(result: DType) -> DTypeRule:
    """Return the rule of an op of these that gives ``result``."""

    def apply(dtypes: tuple[DType, ...], _attrs: Mapping[str, Attr]) -> DType | None:
        return result if all(dtype in ROW_DTYPES for dtype in dtypes) else None

    return DTypeRule(text=f"operands of f16, bf16 or f32; gives {result}", apply=apply)
