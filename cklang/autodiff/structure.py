# SPDX-License-Identifier: MIT
"""Gradient rules of what moves elements: transposes, broadcasts, views, joins, casts."""

from collections.abc import Mapping, Sequence
from typing import Any

from cklang.autodiff.splits import Split
from cklang.autodiff.step import Gradients, Rule, Step
from cklang.autodiff.terms import Term, where
from cklang.ir.joins import CONCAT, STACK, axis_of
from cklang.ir.nodes import Operation, Value
from cklang.ir.rules import Shape
from cklang.ir.views import bounds_of, kept_axes, steps_of, written
from cklang.types import Extent, Kind


def inverse(perm: Sequence[int]) -> tuple[int, ...]:
    """Return the permutation that undoes ``perm``."""
    return tuple(sorted(range(len(perm)), key=perm.__getitem__))


def with_axes(term: Term, added: Sequence[int]) -> Term:
    """Return a term with axes of one element more: those that ``added`` names of the result."""
    rank = term.type.rank + len(added)
    kept = [axis for axis in range(rank) if axis not in added]
    extents = dict(zip(kept, term.shape, strict=True))
    return term.broadcast(tuple(extents.get(axis, 1) for axis in range(rank)), kept)


def joined(parts: Sequence[Term], axis: int, extent: Extent) -> Term:
    """Return terms one after the other along an axis, which then has ``extent`` elements."""
    if len(parts) == 1:
        return parts[0]
    return _join(CONCAT, parts, _with_extent(parts[0].shape, axis, extent), axis)


def _join(op: str, parts: Sequence[Term], shape: Shape, axis: int) -> Term:
    emitter, values = parts[0].emitter, [part.value for part in parts]
    return emitter.term(emitter.append(op, *values, shape=shape, axis=axis))


def whole(split: Split, parts: Mapping[Value, Term]) -> Term:
    """Return the tensor that a program takes apart, of terms like the results of its slices."""
    source = split.source.type
    return _with_all_axes(*_piece(split, parts, source.shape), source.rank)


def _piece(
    piece: Operation | Split, parts: Mapping[Value, Term], extents: Shape
) -> tuple[Term, tuple[int, ...]]:
    """Return a piece of a tensor, and the axes of the tensor that it has."""
    if not isinstance(piece, Split):
        return parts[piece.result], kept_axes(piece)
    axis = piece.axis
    terms, kept = zip(*(_piece(part, parts, extents) for part in piece.pieces), strict=True)
    if len(terms) == extents[axis] and set(kept) == {kept[0]} and axis not in kept[0]:
        # Each piece is an index along the axis, which none of them has.
        place = sum(other < axis for other in kept[0])
        shape = (*terms[0].shape[:place], extents[axis], *terms[0].shape[place:])
        return _join(STACK, terms, shape, place), tuple(sorted((*kept[0], axis)))
    rank = len(extents)
    full = [_with_all_axes(term, own, rank) for term, own in zip(terms, kept, strict=True)]
    return joined(full, axis, extents[axis]), tuple(range(rank))


def _with_all_axes(term: Term, kept: Sequence[int], rank: int) -> Term:
    """Return a part of a tensor with all its axes; the part has those that are ``kept``."""
    return with_axes(term, [axis for axis in range(rank) if axis not in kept])


def _with_extent(shape: Shape, axis: int, extent: Extent) -> Shape:
    return tuple(extent if place == axis else size for place, size in enumerate(shape))


def _sliced(term: Term, axis: int, start: Extent, stop: Extent, shape: Shape) -> Term:
    """Return the elements from ``start`` to ``stop`` along an axis, which ``shape`` may lack."""
    rank = term.type.rank
    axes = tuple(place for place in range(rank) if len(shape) == rank or place != axis)
    starts = _with_extent((0,) * rank, axis, start)
    stops = _with_extent(term.shape, axis, stop)
    value = term.emitter.append(
        "slice",
        term.value,
        shape=shape,
        axes=axes,
        start=tuple(map(written, starts)),
        stop=tuple(map(written, stops)),
        step=(1,) * rank,
    )
    return term.emitter.term(value)


def _transpose(step: Step) -> Gradients:
    return (step.gradient.transpose(inverse(step.axes("perm"))),)


def _broadcast(step: Step) -> Gradients:
    """Sum over what was repeated."""
    (x,), dims = step.operands, step.axes("dims")
    shape = step.gradient.shape
    single = {place for place, axis in enumerate(dims) if x.shape[place] == 1 and shape[axis] != 1}
    kept = {axis for place, axis in enumerate(dims) if place not in single}
    total = step.gradient.sum([axis for axis in range(len(shape)) if axis not in kept])
    return (with_axes(total, sorted(single)),)


def _reshape(step: Step) -> Gradients:
    return (step.gradient.reshape(step.operands[0].shape),)


def _slice(step: Step) -> Gradients:
    """Put zeros around, between elements too where a step skips some."""
    (x,) = step.operands
    starts, stops = (bounds_of(step.operation, name) for name in ("start", "stop"))
    gradient = _with_all_axes(step.gradient, kept_axes(step.operation), x.type.rank)
    for axis, stride in enumerate(steps_of(step.operation)):
        bounds = starts[axis], stops[axis]
        if stride == 1:
            gradient = _padded(gradient, axis, bounds, x.shape[axis])
        else:
            gradient = _spread(gradient, axis, bounds, stride, x.shape[axis])
    return (gradient,)


def _padded(part: Term, axis: int, bounds: tuple[Any, Any], extent: Any) -> Term:
    """Return ``part`` with zeros before and after it along an axis."""
    start, stop = bounds
    before, after = (_zeros(part, axis, count) for count in (start, extent - stop))
    parts = [piece for piece in (before, part, after) if piece is not None]
    return joined(parts, axis, extent)


def _zeros(like: Term, axis: int, count: Extent) -> Term | None:
    if count == 0:
        return None
    return like.emitter.constant(0.0, _with_extent(like.shape, axis, count))


def _spread(part: Term, axis: int, bounds: tuple[Any, Any], stride: int, extent: Extent) -> Term:
    """Return ``part`` with one element each ``stride`` places along an axis, else zeros."""
    emitter = part.emitter
    place = emitter.arange(extent)
    start = _position(part, bounds[0], extent)
    stop = _position(part, bounds[1], extent)
    offset = place - start
    inside = (offset >= 0).both(place < stop).both(offset.call("mod", stride).equals(0))
    index = offset.call("floor_divide", stride)
    spread = emitter.term(emitter.append("take", part.value, index.value, axis=axis))
    return where(inside.broadcast(spread.shape, (axis,)), spread, 0.0)


def _position(like: Term, bound: Extent, extent: Extent) -> Term:
    """Return a bound as i32 numbers along an axis."""
    emitter = like.emitter
    if isinstance(bound, int):
        return emitter.constant(bound, (extent,))
    # The number of places of an axis of that extent.
    value = emitter.arange(bound).value
    return emitter.term(emitter.append("extent", value, axis=0)).broadcast((extent,), ())


def _concat(step: Step) -> Gradients:
    axis = axis_of(step.operation)
    parts: list[Term] = []
    start: Any = 0
    for operand in step.operands:
        stop = start + operand.shape[axis]
        parts.append(_sliced(step.gradient, axis, start, stop, operand.shape))
        start = stop
    return parts


def _stack(step: Step) -> Gradients:
    axis = axis_of(step.operation)
    shapes = enumerate(operand.shape for operand in step.operands)
    return [_sliced(step.gradient, axis, at, at + 1, shape) for at, shape in shapes]


def _cast(step: Step) -> Gradients:
    """Between floats a cast counts as the identity; integers and conditions do not move."""
    dtypes = (step.operands[0].dtype, step.result.dtype)
    moves = all(dtype.kind is Kind.FLOAT for dtype in dtypes)
    return (step.gradient if moves else None,)


STRUCTURE: Mapping[str, Rule] = {
    "transpose": _transpose,
    "broadcast": _broadcast,
    "reshape": _reshape,
    "slice": _slice,
    "concat": _concat,
    "stack": _stack,
    "cast": _cast,
}
"""The rules by op."""
