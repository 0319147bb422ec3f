# SPDX-License-Identifier: MIT
"""``ck.einsum``: a sum of products over named axes becomes one (batched) matrix product.

Labels fall into four groups: batch (in both operands and the result), M (in a and the result), N
(in b and the result) and K (in both and not in the result). One label of M, N and K each is an axis
of the matrix product; the other labels of M and N join the batch, where the operand that lacks
them has extent 1. Nothing moves: the operands are index maps, and what their strides allow to be
folded back into rows or columns is folded at the call.
"""

from __future__ import annotations

from dataclasses import dataclass

from cklang.frontend import emit
from cklang.frontend.ops.gemm import gemm
from cklang.frontend.scope import Scope
from cklang.frontend.text import Located
from cklang.frontend.values import Item, Tensor, describe
from cklang.types import Dim

__all__ = ["Contraction", "einsum", "read_subscripts"]

_FORM = "legal: ck.einsum('gmk,gnk->gmn', a, b), a letter for each axis of two tensors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contraction:
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
    """The label of ``rows`` that is an axis of the product."""
    n: str

    @property
    def others(self) -> tuple[str, str]:
        """The labels of rows and of columns that join the batch."""
        return self.rows.replace(self.m, ""), self.columns.replace(self.n, "")

    @property
    def product(self) -> str:
        """The labels of the product's axes in order."""
        return "".join((self.batch, *self.others, self.m, self.n))


def read_subscripts(subscripts: str) -> Contraction:
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


def _grouped(a: str, b: str, result: str) -> Contraction:
    batch = "".join(label for label in result if label in a and label in b)
    rows = "".join(label for label in result if label not in b)
    columns = "".join(label for label in result if label not in a)
    summed = "".join(label for label in a if label in b and label not in result)
    if not rows or not columns:
        side, name = ("first", "a") if not rows else ("second", "b")
        advice = f"give the {side} operand an axis of its own: {name}[..., None] with a new label"
        raise ValueError(f"the result has no label of the {side} operand alone", advice)
    if len(summed) != 1:
        advice = "legal: one summed label; merge those axes before the call: a.reshape(m, k * l)"
        if not summed:
            advice = "write a product: a[:, None] * b"
        raise ValueError(f"{len(summed)} labels are summed over", advice)
    # Kernels want a contiguous axis: of the result, then of each operand, the last label.
    last = result[-1]
    m = last if last in rows else a[-1] if a[-1] in rows else rows[-1]
    n = last if last in columns else b[-1] if b[-1] in columns else columns[-1]
    return Contraction(
        a=a, b=b, result=result, batch=batch, rows=rows, columns=columns, summed=summed, m=m, n=n
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
    order_a = (*labels.batch, *rows, *("" for _ in columns), labels.m, labels.summed)
    order_b = (*labels.batch, *("" for _ in rows), *columns, labels.summed, labels.n)
    left = _arranged(scope, node, *sides[0], order_a)
    right = _arranged(scope, node, *sides[1], order_b)
    product = gemm(scope, node, left, right)
    place = {label: axis for axis, label in enumerate(labels.product)}
    return emit.permute(scope, node, product, tuple(place[label] for label in labels.result))


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
