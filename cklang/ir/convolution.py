# SPDX-License-Identifier: MIT
"""What the convolution ops mean: their shape rule, and their NumPy by direct sums over the taps.

With the groups apart (:mod:`cklang.ir.windows`), p over the output's positions, t over the taps::

    conv              y[n, p, g, k]  = sum over t, c of  x[n, p s + t d, g, c] w[g, k, t, c]
    conv_grad_input   x[n, q, g, c]  = sum over p s + t d = q, k of  y[n, p, g, k] w[g, k, t, c]
    conv_grad_weight  w[g, k, t, c]  = sum over n, p of  y[n, p, g, k] x[n, p s + t d, g, c]

where x is padded by zeros. Each tap is one matrix product of a slice of the padded input.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from cklang.ir.nodes import Attr, Operation
from cklang.ir.numeric import Array
from cklang.ir.rules import Shape, ShapeRule
from cklang.ir.windows import DIRECTIONS, Direction, Geometry, Relation, Role, geometry
from cklang.types import Dim

Extents = dict[Role, Dim | int]


def geometry_of(operation: Operation) -> Geometry | None:
    """Return the geometry of a convolution op, or None if ``operation`` is none."""
    if operation.op not in DIRECTIONS:
        return None
    return _geometry(dict(operation.attrs), operation.result.type.rank)


def axis_names(operation: Operation) -> tuple[str, ...]:
    """Return what the axes of a convolution op's result are called: n, h, w, k."""
    conv, result = geometry_of(operation), DIRECTIONS[operation.op].result
    if conv is None:
        return ()
    names = ((r.weight_name if result is Role.WEIGHT else r.name, r) for r in conv.relations)
    at = {r.axes[result]: name.lower() for name, r in names if result in r.axes}
    return tuple(at[axis] for axis in range(conv.rank))


def _geometry(attrs: Mapping[str, Any], rank: int) -> Geometry | None:
    return geometry(attrs["stride"], attrs["padding"], attrs["dilation"], attrs["groups"], rank)


# --- shapes


def _shape_rule(direction: Direction) -> ShapeRule:
    def apply(
        shapes: tuple[Shape, ...], attrs: Mapping[str, Attr], declared: Shape | None
    ) -> Shape | None:
        if declared is None or len({len(shape) for shape in (*shapes, declared)}) != 1:
            return None
        conv = _geometry(attrs, len(declared))
        if conv is None:
            return None
        tensors = dict(zip(direction.operands, shapes, strict=True)) | {direction.result: declared}
        for relation in conv.relations:
            extents = {role: tensors[role][axis] for role, axis in relation.axes.items()}
            if not may_hold(relation, direction.result, extents):
                return None
        return declared

    return ShapeRule(
        text="input [N, …, C], weight [K, …, C/G] and output [N, …, K], or with groups apart "
        "[N, …, G, C], [G, K, …, C] and [N, …, G, K], … one to three axes with a stride, a "
        "dilation and a pair of paddings each",
        apply=apply,
        declared=True,
    )


def may_hold(relation: Relation, result: Role, extents: Extents) -> bool:
    """Tell whether extents, some of them dims, can obey ``relation``; dims are taken as unequal.

    What depends on the value of a dim is checked when it is known (:mod:`cklang.ir.derive`).
    """
    if relation.is_equality and not relation.is_open and len(set(extents.values())) != 1:
        return False
    numbers = {role: extent for role, extent in extents.items() if isinstance(extent, int)}
    if len(numbers) == len(extents):
        known = {role: extent for role, extent in numbers.items() if role is not result}
        if result not in extents:
            return bool(relation.allowed(result, known))
        return extents[result] in relation.allowed(result, known)
    if relation.shared > 1:
        return extents[Role.INPUT] != extents[Role.WEIGHT]
    if relation.window is None:
        return True
    weight, moves = numbers.get(Role.WEIGHT), relation.window.stride == 1
    if weight is None or not moves or extents[Role.INPUT] != extents[Role.OUTPUT]:
        return weight is None or weight > 0
    return relation.window.room(0, weight) == -1


SHAPES: Mapping[str, ShapeRule] = {
    name: _shape_rule(direction) for name, direction in DIRECTIONS.items()
}
"""The shape rule of each convolution op."""


# --- NumPy


def numpy_of(op: str) -> Callable[..., Array]:
    """Return the NumPy meaning of a convolution op.

    It takes the operands, the attributes and ``shape``, the extents of the result.
    """
    direction = DIRECTIONS[op]

    def compute(a: Array, b: Array, *, shape: Sequence[int], **attrs: Any) -> Array:
        conv = _geometry(attrs, a.ndim)
        if conv is None:
            raise ValueError(f"{attrs} is no convolution of rank {a.ndim}")
        arrays = dict(zip(direction.operands, (a, b), strict=True))
        arrays[direction.result] = np.zeros(shape, np.result_type(a, b))
        _accumulate(conv, direction.result, arrays)
        result = arrays[direction.result]
        # i32 wraps at 32 bits, as the kernel's sums do.
        return result if result.dtype.kind == "f" else result.astype(np.int32).astype(np.int64)

    return compute


def _accumulate(conv: Geometry, missing: Role, arrays: dict[Role, Array]) -> None:
    """Add every tap's products to the array of ``missing``, which holds zeros."""
    image, weight, output = _apart(conv, arrays)
    padded = np.pad(image, ((0, 0), *((w.before, w.after) for w in conv.windows), (0, 0), (0, 0)))
    for tap, part in _taps(conv, weight.shape, output.shape):
        # Views of one tap: [N, …, G, C] of the input and [G, K, C] of the weight.
        if missing is Role.OUTPUT:
            output += np.einsum("n...gc,gkc->n...gk", padded[part], weight[tap], optimize=True)
        elif missing is Role.INPUT:
            padded[part] += np.einsum("n...gk,gkc->n...gc", output, weight[tap], optimize=True)
        else:
            places = prod(output.shape[:-2])
            rows = output.reshape(places, *output.shape[-2:])
            columns = padded[part].reshape(places, *padded.shape[-2:])
            weight[tap] += np.einsum("rgk,rgc->gkc", rows, columns, optimize=True)
    if missing is Role.INPUT:
        inner = tuple(
            slice(w.before, w.before + extent)
            for w, extent in zip(conv.windows, image.shape[1:-2], strict=True)
        )
        image += padded[(slice(None), *inner)]


def _taps(
    conv: Geometry, weight: Sequence[int], output: Sequence[int]
) -> Iterator[tuple[Any, Any]]:
    """Yield the index of each tap in the weight, and of what it meets in the padded input."""
    positions = output[1:-2]
    for tap in itertools.product(*(range(extent) for extent in weight[2:-1])):
        starts = [w.dilation * place for w, place in zip(conv.windows, tap, strict=True)]
        part = tuple(
            slice(start, start + (count - 1) * w.stride + 1, w.stride)
            for start, count, w in zip(starts, positions, conv.windows, strict=True)
        )
        yield (slice(None), slice(None), *tap), (slice(None), *part)


def _apart(conv: Geometry, arrays: Mapping[Role, Array]) -> tuple[Array, Array, Array]:
    """Return input, weight and output as views with an axis of groups."""
    x, w, y = (arrays[role] for role in Role)
    if conv.apart:
        return x, w, y
    groups = conv.groups
    return (
        x.reshape(*x.shape[:-1], groups, x.shape[-1] // groups),
        w.reshape(groups, w.shape[0] // groups, *w.shape[1:]),
        y.reshape(*y.shape[:-1], groups, y.shape[-1] // groups),
    )


def summed(conv: Geometry, missing: Role, shapes: Mapping[Role, Sequence[int]]) -> int:
    """Return how many products an element of the result is the sum of, at most.

    ``missing`` is the tensor that it computes, ``shapes`` are the extents of the other two.
    """
    if missing is Role.WEIGHT:
        return prod(shapes[Role.OUTPUT][: conv.spatial + 1])
    weight = shapes[Role.WEIGHT]
    if missing is Role.OUTPUT:
        return prod(weight[1 + conv.apart :])
    return prod(weight[conv.apart : -1]) // conv.groups
