# SPDX-License-Identifier: MIT
"""Gradient rules of matrix products and convolutions: products and convolutions themselves.

A kernel multiplies operands of one dtype, so the gradient by the result, which is f32, is rounded
to the dtype of the other operand first; where that has 8 bits, both become bf16. Sums are f32.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cklang.autodiff.step import Gradients, Rule, Step
from cklang.autodiff.structure import with_axes
from cklang.autodiff.terms import Term
from cklang.ir.contraction import Contraction
from cklang.ir.grouped import GROUPED_GEMM, GROUPED_GEMM_K
from cklang.ir.windows import DIRECTIONS
from cklang.types import DType, bf16, f16, f32

Axes = tuple[object, ...]
"""A label for each axis; operands that are multiplied and summed along an axis share its label."""


def common_dtype(dtype: DType) -> DType:
    """Return the dtype in which an operand is multiplied by a gradient."""
    return dtype if dtype in (f16, bf16, f32) else bf16


def _rounded(gradient: Term, other: Term) -> tuple[Term, Term]:
    """Return a gradient and an operand in the dtype of their product."""
    dtype = common_dtype(other.dtype)
    return gradient.cast(dtype), other.cast(dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """A term and the labels of its axes."""

    term: Term
    axes: Axes

    def ordered(self, labels: Sequence[object]) -> Term:
        """Return it with its axes in an order; labels that it lacks are axes of one element."""
        own = [label for label in labels if label in self.axes]
        term = self.term.transpose([self.axes.index(label) for label in own])
        missing = [at for at, label in enumerate(labels) if label not in self.axes]
        # Axes that are missing in front need not be there.
        front = next((at for at, label in enumerate(labels) if label in self.axes), len(labels))
        inner = [at - front for at in missing if at >= front]
        return with_axes(term, inner) if inner else term


def product(left: Labelled, right: Labelled, result: Axes) -> Term:
    """Return the sum of products of two terms over the labels that the result lacks.

    The last label that one operand alone gives to the result is its own axis of the product; all
    others of the result are axes of the batch.
    """
    shared = set(left.axes) & set(right.axes)
    summed = [label for label in right.axes if label in shared and label not in result]
    rows = [label for label in result if label not in right.axes][-1:]
    columns = [label for label in result if label not in left.axes][-1:]
    batch = [label for label in result if label not in (*rows, *columns)]
    # What both have stands last, so that broadcast axes are in front as far as they can be.
    batch.sort(key=lambda label: label in shared)
    a = left.ordered([*batch, *rows, *summed])
    b = right.ordered([*batch, *summed, *columns])
    emitter = a.emitter
    counts = {"rows": len(rows), "columns": len(columns), "summed": len(summed)}
    is_plain = set(counts.values()) == {1}
    op, attrs = ("gemm", {}) if is_plain else ("contract", counts)
    value = emitter.apply(op, (a.value, b.value), attrs)
    order = [*batch, *rows, *columns]
    return emitter.term(value).transpose([order.index(label) for label in result])


def _gradient_by(own: Labelled, other: Labelled, gradient: Labelled, *, is_left: bool) -> Term:
    """Return the gradient by one operand of a product; ``is_left`` says by which."""
    shape = own.term.shape
    single = [at for at, label in enumerate(own.axes) if label is None]
    labels = tuple(label for label in own.axes if label is not None)
    dropped = [at for at, label in enumerate(other.axes) if label is None]
    kept = [extent for at, extent in enumerate(other.term.shape) if at not in dropped]
    used = other.term.reshape(tuple(kept)) if dropped else other.term
    g, used = _rounded(gradient.term, used)
    pair = (
        Labelled(term=g, axes=gradient.axes),
        Labelled(term=used, axes=tuple(label for label in other.axes if label is not None)),
    )
    left, right = pair if is_left else pair[::-1]
    term = with_axes(product(left, right, labels), single)
    return term if term.shape == shape else term.reshape(shape)


def _contraction(step: Step) -> Gradients:
    """Multiply the gradient by the other operand: ``dy @ w.T`` and ``x.T @ dy``."""
    contraction = Contraction.of(step.operation)
    a, b = step.operands
    batch_a, rows, summed = contraction.split_a(range(a.type.rank))
    batch_b, _, columns = contraction.split_b(range(b.type.rank))
    rank = step.gradient.type.rank - len(rows) - len(columns)
    batch: Axes = tuple(("batch", place) for place in range(rank))
    m: Axes = ("m",) * len(rows)
    n: Axes = ("n",) * len(columns)
    k: Axes = tuple(("k", place) for place in range(len(summed)))
    result = step.gradient.shape[:rank]
    own_a = _aligned(a.shape[: len(batch_a)], batch, result)
    own_b = _aligned(b.shape[: len(batch_b)], batch, result)
    left = Labelled(term=a, axes=(*own_a, *m, *k))
    right = Labelled(term=b, axes=(*own_b, *k, *n))
    gradient = Labelled(term=step.gradient, axes=(*batch, *m, *n))
    return [
        _gradient_by(left, right, gradient, is_left=True) if step.needed[0] else None,
        _gradient_by(right, left, gradient, is_left=False) if step.needed[1] else None,
    ]


def _aligned(own: Sequence[object], batch: Axes, result: Sequence[object]) -> Axes:
    """Return the label of each batch axis of an operand; None for one that is broadcast."""
    if not own:
        return ()
    pairs = zip(own, batch[-len(own) :], result[-len(own) :], strict=True)
    return tuple(label if mine == full else None for mine, label, full in pairs)


def _convolution(step: Step) -> Gradients:
    """Compute the role of each operand from the other one and the gradient: a convolution too."""
    direction = DIRECTIONS[step.operation.op]
    operands = dict(zip(direction.operands, step.operands, strict=True))
    gradients: list[Term | None] = []
    for role, is_needed in zip(direction.operands, step.needed, strict=True):
        (other,) = (operand for name, operand in operands.items() if name is not role)
        (op,) = (name for name, candidate in DIRECTIONS.items() if candidate.result is role)
        gradient, used = _rounded(step.gradient, other)
        tensors = {direction.result: gradient, **dict.fromkeys(operands, used)}
        values = tuple(tensors[name].value for name in DIRECTIONS[op].operands)
        if not is_needed:
            gradients.append(None)
            continue
        shape = operands[role].shape
        value = step.emitter.apply(op, values, dict(step.operation.attrs), shape)
        gradients.append(step.emitter.term(value))
    return gradients


def _grouped(step: Step) -> Gradients:
    """Multiply groups of rows of the gradient by their transposed matrices, and sum over groups."""
    x, w, ends = step.operands
    gradients: list[Term | None] = [None, None, None]
    if step.needed[0]:
        g, used = _rounded(step.gradient, w)
        gradients[0] = _grouped_product(step, GROUPED_GEMM, g, used.transpose((0, 2, 1)), ends)
    if step.needed[1]:
        g, used = _rounded(step.gradient, x)
        gradients[1] = _grouped_product(step, GROUPED_GEMM_K, used.transpose((1, 0)), g, ends)
    return gradients


def _grouped_along_k(step: Step) -> Gradients:
    """Multiply rows of the one operand by the matrices of their group of the gradient."""
    x, y, ends = step.operands
    gradients: list[Term | None] = [None, None, None]
    if step.needed[0]:
        g, used = _rounded(step.gradient, y)
        rows = _grouped_product(step, GROUPED_GEMM, used, g.transpose((0, 2, 1)), ends)
        gradients[0] = rows.transpose((1, 0))
    if step.needed[1]:
        g, used = _rounded(step.gradient, x)
        gradients[1] = _grouped_product(step, GROUPED_GEMM, used.transpose((1, 0)), g, ends)
    return gradients


def _grouped_product(step: Step, op: str, a: Term, b: Term, ends: Term) -> Term:
    operands = (a.value, b.value, ends.value)
    return step.emitter.term(step.emitter.apply(op, operands, {}))


PRODUCTS: Mapping[str, Rule] = {
    "gemm": _contraction,
    "contract": _contraction,
    GROUPED_GEMM: _grouped,
    GROUPED_GEMM_K: _grouped_along_k,
    **dict.fromkeys(DIRECTIONS, _convolution),
}
"""The rules by op."""
