# SPDX-License-Identifier: MIT
"""``ck.sample``: tokens drawn from logits."""

from typing import Any

import numpy as np

from cklang.frontend import emit
from cklang.frontend.intrinsics import function
from cklang.frontend.ops.arrays import as_array
from cklang.frontend.scope import Scope
from cklang.frontend.text import Located
from cklang.frontend.values import Item, Tensor, describe, is_number
from cklang.ir.nodes import Value
from cklang.ir.numeric import Array
from cklang.ir.reductions import MOST_AXES
from cklang.ir.sampling import OPERANDS, SAMPLE
from cklang.ir.sampling import sample as drawn
from cklang.types import Kind, f32

__all__ = ["sample"]


def _sampled(logits: Any, *_none: Any, **numbers: Any) -> Array:
    x = as_array(logits)
    columns = [
        np.asarray(numbers[name], OPERANDS[name][-1].numpy) for name in OPERANDS if name in numbers
    ]
    return drawn(x, *columns).astype(np.int32)


@function(
    "a token of each row, drawn within min_p, top_k, top_p",
    eager=_sampled,
    example="""
    >>> logits = np.array([[0.0, 2.0, 1.0, -np.inf]] * 4, np.float32)
    >>> ck.sample(logits, 2)
    array([2, 1, 1, 2], dtype=int32)
    >>> ck.sample(logits, np.array([1, 1, 2, 2]), temperature=2.0, top_k=2, top_p=0.9)
    array([1, 1, 2, 2], dtype=int32)
    >>> ck.sample(logits, 7, temperature=0)
    array([1, 1, 1, 1], dtype=int32)
    """,
)
def sample(
    scope: Scope,
    node: Located,
    logits: Item,
    seed: Item,
    offset: Item = 0,
    *,
    temperature: Item = 1.0,
    top_k: Item = 0,
    top_p: Item = 1.0,
    min_p: Item = 0.0,
) -> Tensor:
    """Return a token of each row; :mod:`cklang.ir.sampling` says which.

    Raises:
        CkTypeError: F066 for logits that are no tensor of numbers, F045 for a conversion that
            kernels do not make, F044 for a constant that is no number of the dtype.
        CkValueError: F067 for something else than numbers, F042 for those that do not broadcast to
            the rows, F043 for a constant that is too large.
    """
    x = _logits(scope, node, logits)
    numbers = (seed, offset, temperature, top_k, top_p, min_p)
    operands = [
        _number(scope, node, x, name, item)
        for name, item in zip(list(OPERANDS)[1:], numbers, strict=True)
    ]
    value = scope.unit.append(
        SAMPLE, emit.materialise(scope, node, x), *operands, attrs={}, span=scope.span(node)
    )
    return Tensor.plain(value, x.origins[:-1])


def _logits(scope: Scope, node: Located, item: Item) -> Tensor:
    """Return a tensor in a dtype that kernels read."""
    if not isinstance(item, Tensor) or not 1 <= len(item.shape) <= MOST_AXES:
        problem = f"it takes logits of one to {MOST_AXES} axes, not {describe(item)}"
        advice = "write ck.sample(x, seed) of logits such as x: ck.f32[B, V]"
        raise scope.error("F066", node, op=SAMPLE, problem=problem, advice=advice)
    return item if item.dtype in OPERANDS["logits"] else emit.cast(scope, node, item, f32)


def _number(scope: Scope, node: Located, x: Tensor, name: str, item: Item) -> Value:
    """Return a number of all rows, or one for each."""
    legal, item = OPERANDS[name], emit.number(scope, node, item)
    if is_number(item):
        constant = emit.constant_number(scope, node, item, legal[0])
        return scope.unit.append("constant", span=scope.span(node), attrs={"value": constant})
    rows = x.shape[:-1]
    is_integer = isinstance(item, Tensor) and item.dtype.kind is not Kind.FLOAT
    if not isinstance(item, Tensor) or (legal[0] != f32 and not is_integer):
        shapes = f"a constant, a scalar, or {emit.brackets(rows)}"
        raise ValueError(
            f"{name} is {describe(item)}", f"legal: {' or '.join(map(str, legal))}, {shapes}"
        )
    cast = item if item.dtype in legal else emit.cast(scope, node, item, legal[0])
    broadcast = emit.broadcast_to(scope, node, cast, rows) if cast.shape else cast
    return emit.materialise(scope, node, broadcast)
