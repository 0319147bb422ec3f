# SPDX-License-Identifier: MIT
"""``ck.einsum``: a sum of products over named axes becomes one (batched) matrix product.

Labels fall into four groups: batch (in both operands and the result), M (in a and the result), N
(in b and the result) and K (in both and not in the result). One label of M and of N is an axis of
the matrix product; the other labels of M and N join the batch, where the operand that lacks them
has extent 1. All labels of K are summed over. A group may have no label. Nothing moves: the
operands are index maps, and what their strides allow to be folded back into rows, columns or one
axis K is folded at the call.
"""

from typing import Any, NamedTuple

import numpy as np

from cklang.frontend import emit
from cklang.frontend.intrinsics import function
from cklang.frontend.ops.arrays import as_array
from cklang.frontend.ops.gemm import contract
from cklang.frontend.scope import Scope
from cklang.frontend.text import Located
from cklang.frontend.values import Item, Tensor, describe
from cklang.ir.contraction import Contraction
from cklang.ir.numeric import Array
from cklang.types import Dim

__all__ = ["einsum"]

_FORM = "legal: ck.einsum('gmk,gnk->gmn', a, b), a letter for each axis of two tensors"


class Labels(NamedTuple):
    """The labels of a contraction by what they are to the product."""

    a: str
    b: str
    result: str
    batch: str
    """In a, b and the result; in the result's order, as ``rows`` and ``columns`` are."""
    rows: str
    columns: str
    summed: str
    m: str
    """The label of ``rows`` that is an axis of the product; empty if there is none."""
    n: str

    @property
    def others(self) -> tuple[str, str]:
        """The labels of rows and of columns that join the batch."""
        return self.rows.replace(self.m, ""), self.columns.replace(self.n, "")

    @property
    def contraction(self) -> Contraction:
        """The axes of the product's operands beside the batch."""
        return Contraction(rows=len(self.m), columns=len(self.n), summed=len(self.summed))

    @property
    def product(self) -> str:
        """The labels of the product's axes in order."""
        return "".join((self.batch, *self.others, self.m, self.n))


def read_subscripts(subscripts: str) -> Labels:
    """Read ``"gmk,gnk->gmn"``; without an arrow the result has what stands once, sorted.

    Raises:
        ValueError: With the problem and what to do about it, for :func:`einsum` to place.
    """
    text = subscripts.replace(" ", "")
    inputs, arrow, result = text.partition("->")
    a, comma, b = inputs.partition(",")
    if not comma or not all(part.isalpha() or not part for part in (a, b, result)):
        raise ValueError("the subscripts are not of the form a,b->result", _FORM)
    for part in (a, b, result):
        if len(set(part)) < len(part):
            advice = "legal: every label once an operand; a diagonal is no view that kernels read"
            raise ValueError(f"{part!r} has a label twice", advice)
    if not arrow:
        result = "".join(sorted(set(a) ^ set(b)))
    unknown = [label for label in result if label not in a + b]
    if unknown:
        raise ValueError(f"{unknown[0]!r} of the result is in no operand", _FORM)
    dropped = [label for label in a + b if (label in a) != (label in b) and label not in result]
    if dropped:
        advice = "legal: sums over labels of both operands; sum the operand before the call"
        raise ValueError(f"{dropped[0]!r} is summed over in one operand alone", advice)
    return _grouped(a, b, result)


def _grouped(a: str, b: str, result: str) -> Labels:
    rows, columns = _without(result, b), _without(result, a)
    batch = _without(result, rows + columns)
    summed = _without(a, result)
    if not summed and not (rows and columns):
        problem = "no label is summed over, and the result has no label of "
        problem += "one operand alone" if rows or columns else "either operand alone"
        raise ValueError(problem, "write a product of elements: a * b, or a[:, None] * b")
    # Kernels want a contiguous axis: of the result, then of each operand, the last label.
    last = result[-1:]
    m, n = _own(rows, last, a), _own(columns, last, b)
    return Labels(
        a=a, b=b, result=result, batch=batch, rows=rows, columns=columns, summed=summed, m=m, n=n
    )


def _without(labels: str, others: str) -> str:
    return "".join(label for label in labels if label not in others)


def _own(labels: str, last: str, operand: str) -> str:
    """Return which of an operand's own labels is an axis of the product: the last one."""
    contiguous = next((axis for axis in (last, operand[-1:]) if axis and axis in labels), "")
    return contiguous or labels[-1:]


def _computed(subscripts: str, a: Any, b: Any) -> Array:
    return np.asarray(np.einsum(subscripts, as_array(a), as_array(b)))


@function(
    "the sum of products of two tensors whose axes are named by letters, as NumPy's einsum",
    eager=_computed,
    example="""
    >>> ck.einsum("mk,nk->mn", np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [5.0, 6.0]]))
    array([[11., 17.]])
    """,
    explains_numpy=False,
)
def einsum(scope: Scope, node: Located, subscripts: Item, a: Item, b: Item) -> Tensor:
    """Put a contraction of two tensors into the IR.

    Raises:
        CkTypeError: F040 for an operand that is no tensor, F048 for the dtypes.
        CkValueError: F058 for subscripts that are no contraction or do not fit, F042 and F049 for
            extents.
    """
    if not isinstance(subscripts, str):
        problem = f"the subscripts are {describe(subscripts)}"
        raise scope.error("F058", node, subscripts="…", problem=problem, advice=_FORM)
    try:
        labels = read_subscripts(subscripts)
    except ValueError as refusal:
        problem, advice = refusal.args
        raise scope.error(
            "F058", node, subscripts=subscripts, problem=problem, advice=advice
        ) from None
    sides = []
    for item, names in ((a, labels.a), (b, labels.b)):
        if not isinstance(item, Tensor):
            raise scope.error("F040", node, what=describe(item), advice="pass two tensors")
        if len(item.shape) != len(names):
            problem = f"{names!r} names {len(names)} axes, but the operand is {item.type}"
            raise scope.error("F058", node, subscripts=subscripts, problem=problem, advice=_FORM)
        sides.append((item, {label: axis for axis, label in enumerate(names)}))
    rows, columns = labels.others
    order_a = (*labels.batch, *rows, *("" for _ in columns), *labels.m, *labels.summed)
    order_b = (*labels.batch, *("" for _ in rows), *columns, *labels.summed, *labels.n)
    left = _arranged(scope, node, *sides[0], order_a)
    right = _arranged(scope, node, *sides[1], order_b)
    if labels.contraction != Contraction():
        _check_summed(scope, node, labels, subscripts, (left, right))
    product = contract(scope, node, left, right, labels.contraction)
    place = {label: axis for axis, label in enumerate(labels.product)}
    return emit.permute(scope, node, product, tuple(place[label] for label in labels.result))


def _check_summed(
    scope: Scope, node: Located, labels: Labels, subscripts: str, sides: tuple[Tensor, Tensor]
) -> None:
    """Refuse summed labels that have two extents (F058)."""
    a, b = sides
    *_, summed_a = labels.contraction.split_a(tuple(zip(a.shape, a.origins, strict=True)))
    _, summed_b, _ = labels.contraction.split_b(tuple(zip(b.shape, b.origins, strict=True)))
    for label, (one, from_a), (other, from_b) in zip(
        labels.summed, summed_a, summed_b, strict=True
    ):
        if not scope.unit.derived.same(one, other):
            problem = f"{label!r} is {one} in the first operand and {other} in the second"
            advice = f"{one} is {from_a}\n{other} is {from_b}"
            raise scope.error("F058", node, subscripts=subscripts, problem=problem, advice=advice)


def _arranged(
    scope: Scope, node: Located, tensor: Tensor, axes: dict[str, int], order: tuple[str, ...]
) -> Tensor:
    """Return a tensor with its axes in ``order``; a label of no axis is an axis of extent 1."""
    turned = emit.permute(scope, node, tensor, tuple(axes[label] for label in order if label))
    value = emit.materialise(scope, node, turned)
    places = [place for place, label in enumerate(order) if label]
    shape: list[Dim | int] = [1] * len(order)
    origins = ["an axis that only the other operand has"] * len(order)
    for axis, place in enumerate(places):
        shape[place], origins[place] = turned.shape[axis], turned.origins[axis]
    return Tensor(value=value, shape=tuple(shape), axes=tuple(places), origins=tuple(origins))
