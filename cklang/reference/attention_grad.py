# SPDX-License-Identifier: MIT
"""The gradients of an attention, and how far right kernels may be from them.

With weights p (rows of the softmax), what dropout keeps of them, r (0 or one over the probability
that keeps), and the gradient g of o:

    dp = g v'         D = sum of g o along the head         ds = p (r dp - D) f'
    dq = scale ds k   dk = scale ds' q   dv = (p r)' g      dbias = ds

f' is the derivative of the score function by the product, 1 of one that adds to it. Kernels find p
again from lse, take o as it was rounded for D, and round p and ds to the element type before the
sums over queries and keys. What several scores share, a head of keys or an element of a bias, has
the sum of their gradients, in any order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cklang.autodiff.transform import score_derivative
from cklang.errors import error
from cklang.ir.attention import group_size, one_sequence, sequences
from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.numeric import Array
from cklang.reference.attention import (
    WEIGHTS,
    Rows,
    cut,
    derivative_of,
    factor_of,
    given_of,
    kept_of,
    lse_of,
    output_of,
    rows_of,
    shared_heads,
    turned,
)
from cklang.reference.attention_gradient_ops import added, multiplied, narrowed, scaled, times
from cklang.reference.bounds import run_body
from cklang.reference.evaluate import bind
from cklang.reference.sums import UNIT, Known, finite, float_sums, gamma
from cklang.types import Dim, DType

_SIDES = 3
"""q, k and v, which are the first operands of an attention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedBias:
    """A bias that a score adds."""

    param: int
    """Which parameter of the function it is."""
    axes: tuple[int | None, ...]
    """Its axis for each of batch, head and query; None if all have the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Problem:
    """An attention, its operands by role, and what its result is multiplied by."""

    operation: Operation
    by_role: dict[str, list[Known]]
    dims: dict[Dim, int]
    grad: Array

    @property
    def dtype(self) -> DType:
        """The dtype of q, k, v and of intermediate roundings."""
        return self.operation.operands[0].type.dtype


def gradients_with_bound(
    function: Function, arrays: Sequence[Any], grad: Any, bias: SharedBias | None = None
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Return the gradients of ``(grad * o).sum()`` and the absolute error a kernel may have.

    Args:
        function: A verified function that returns o of one attention.
        arrays: One array for each parameter, as for :func:`cklang.reference.evaluate.evaluate`.
        grad: An array like o.
        bias: The bias whose gradient is wanted too.

    Returns:
        Those of q, k, v and the bias, each like its parameter, and float64 bounds of the same
        shapes, infinite where nothing is known: of keys and values of no packed sequence.

    Raises:
        CkInternalError: Z002, the function has no attention, or its q, k or v is no parameter.
        CkError: As :func:`cklang.reference.evaluate.evaluate`.
    """
    operation = next((step for step in function.body if step.op == "attention"), None)
    if operation is None:
        raise error("Z002", what=f"@{function.name} has no attention to take the gradient of")
    bound = bind(function, arrays)
    known = {name: Known.exact(array) for name, array in bound.values.items()}
    with np.errstate(all="ignore"):
        run_body(function, known, bound.dims, before=operation)
        by_role = given_of(operation, [known[operand.name] for operand in operation.operands])
        wide = np.asarray(grad).astype(np.float64)
        problem = _Problem(operation=operation, by_role=by_role, dims=bound.dims, grad=wide)
        gradients = _packed(problem) if by_role["starts_q"] else _piece(problem, 0)
        pairs = zip(operation.operands[:_SIDES], gradients[:_SIDES], strict=True)
        sides = [_back(function, side, part) for side, part in pairs]
        if bias is not None:
            like = function.params[bias.param]
            sides.append((like, _shared(gradients[_SIDES], bias, known[like.name].value.shape)))
        rounded = [_rounded(part, value.type.dtype) for value, part in sides]
    return tuple(pair[0] for pair in rounded), tuple(pair[1] for pair in rounded)


def _piece(problem: _Problem, first: int) -> list[Known]:
    """Return dq, dk, dv and dbias of whole tensors whose first batch index is ``first``."""
    operation, by_role = problem.operation, problem.by_role
    rows = rows_of(operation, by_role, problem.dims, first)
    o = output_of(operation, by_role, rows, first)
    heads = rows.weights.shape[1]
    (q,), k = by_role["q"], shared_heads(by_role["k"][0], heads)
    v, g = shared_heads(by_role["v"][0], heads), Known.exact(problem.grad)
    grain, least, step = WEIGHTS[problem.dtype.name]
    keep = kept_of(operation, by_role, rows, first)
    p = _probabilities(rows)
    d = _along_head(g, _stored(o, problem.dtype))
    dp, off, _ = float_sums(g, turned(v))
    dropped = Known(value=keep * dp, error=keep * off + 4 * UNIT * np.abs(keep * dp))
    ds = times(p, Known(value=dropped.value - d.value, error=dropped.error + d.error))
    score = operation.attr("score")
    derivative = score_derivative(score) if isinstance(score, Function) else None
    if derivative is not None:
        slope = derivative_of(operation, derivative, by_role, problem.dims, first)
        ds = times(ds, slope)
    used = times(p, Known.exact(keep))
    ds_low, used_low = (narrowed(array, grain, least, step) for array in (ds, used))
    scale = factor_of(operation, q.value.shape[3])
    dq = scaled(multiplied(ds_low, k), scale)
    dk = scaled(multiplied(turned(ds_low), q), scale)
    dv = multiplied(turned(used_low), g)
    count = group_size(heads, by_role["k"][0].value.shape[1])
    return [dq, added(dk, count), added(dv, count), ds_low]


def _packed(problem: _Problem) -> list[Known]:
    """Return dq, dk and dv of packed sequences; no query outside of them has a gradient."""
    by_role = problem.by_role
    (q,), (k,), (v,), (starts_q,) = (by_role[name] for name in ("q", "k", "v", "starts_q"))
    starts_k = by_role["starts_k"][0] if by_role["starts_k"] else starts_q
    gradients = [
        Known(value=np.zeros(x.value.shape), error=np.full(x.value.shape, missing))
        for x, missing in ((q, 0.0), (k, np.inf), (v, np.inf))
    ]
    for b, (mine, theirs) in enumerate(sequences(starts_q.value, starts_k.value)):
        places = (mine, theirs, theirs)
        own = {name: [cut(x, at)] for name, x, at in zip("qkv", (q, k, v), places, strict=True)}
        part = _Problem(
            operation=problem.operation,
            by_role=by_role | own,
            dims=problem.dims,
            grad=one_sequence(problem.grad, mine),
        )
        for full, at, gradient in zip(gradients, places, _piece(part, b), strict=False):
            full.value[at] = gradient.value[0].swapaxes(0, 1)
            full.error[at] = gradient.error[0].swapaxes(0, 1)
    return gradients


def _probabilities(rows: Rows) -> Known:
    """Return the softmax, as kernels find it from the scores and lse; 0 in rows without weights."""
    empty = rows.total == 0
    value = np.where(empty, 0.0, rows.weights / np.where(empty, 1.0, rows.total))
    lse = lse_of(rows)
    wide = np.where(empty[..., 0], 0.0, lse.error)[..., None]
    moved = (1 + rows.relative) * np.exp(wide) * (1 + 8 * UNIT) - 1
    wild = np.isinf(moved) | (value != value)
    return Known(value=value, error=np.where(wild, np.inf, value * finite(moved)))


def _along_head(g: Known, o: Known) -> Known:
    """Return D: what the products of g and o sum to along each head."""
    magnitude = (np.abs(g.value) * (np.abs(finite(o.value)) + finite(o.error))).sum(-1)
    passed = (np.abs(g.value) * finite(o.error)).sum(-1)
    value = (g.value * o.value).sum(-1)
    off = passed + gamma(g.value.shape[3]) * magnitude
    wild = ~np.isfinite(o.error).all(-1) | ~np.isfinite(value)
    return Known(value=value[..., None], error=np.where(wild, np.inf, off)[..., None])


def _stored(known: Known, dtype: DType) -> Known:
    """Return what is known of a value that was stored in ``dtype`` and read again."""
    stored, off = _rounded(known, dtype)
    return Known(value=known.value, error=off + np.abs(stored.astype(np.float64) - known.value))


def _shared(known: Known, bias: SharedBias, shape: tuple[int, ...]) -> Known:
    """Return the sum over the scores that share an element of a bias of ``shape``."""
    gone = tuple(place for place, axis in enumerate(bias.axes) if axis is None)
    magnitude = (np.abs(finite(known.value)) + finite(known.error)).sum(gone)
    count = int(np.prod([known.value.shape[place] for place in gone], dtype=np.int64))
    value = known.value.sum(gone)
    off = known.error.sum(gone) + (gamma(count) * magnitude if gone else 0.0)
    # In the order of the bias's own axes; those of extent 1 are not there yet.
    order = np.argsort([axis for axis in bias.axes if axis is not None], kind="stable")
    axes = (*(int(place) for place in order), value.ndim - 1)
    value, off = (array.transpose(axes).reshape(shape) for array in (value, off))
    return Known(value=value, error=off)


def _back(function: Function, side: Value, known: Known) -> tuple[Value, Known]:
    """Return the parameter that ``side`` is, or is a transpose of, and what is known of it."""
    definitions = function.definitions()
    value, error_ = known.value, known.error
    while side.name in definitions:
        operation = definitions[side.name]
        perm = operation.attr("perm")
        if operation.op != "transpose" or not isinstance(perm, tuple):
            raise error("Z002", what=f"{side.name} is no parameter of an attention")
        inverse = np.argsort(np.asarray(perm, int))
        value, error_ = value.transpose(inverse), error_.transpose(inverse)
        (side,) = operation.operands
    return side, Known(value=value, error=error_)


def _rounded(known: Known, dtype: DType) -> tuple[Array, Array]:
    """Return a result in its type, and how far a kernel's, rounded alike, may be from it."""
    result = known.value.astype(dtype.numpy)
    near, off = result.astype(np.float64), finite(known.error)
    ends = [(known.value + sign * off).astype(dtype.numpy).astype(np.float64) for sign in (-1, 1)]
    moved = np.maximum(*(np.abs(end - near) for end in ends))
    return result, np.where(np.isfinite(known.error) & np.isfinite(moved), moved, np.inf)
