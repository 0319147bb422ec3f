# SPDX-License-Identifier: MIT
"""``ck.conv`` and its gradients."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from cklang.errors import CkError
from cklang.frontend import emit
from cklang.frontend.intrinsics import Intrinsic
from cklang.frontend.ops.arrays import as_array
from cklang.frontend.ops.conv_arguments import (
    LETTERS,
    Call,
    Extent,
    as_direction,
    layout_of,
    read_call,
)
from cklang.frontend.scope import Scope
from cklang.frontend.text import Located
from cklang.frontend.values import Item, Tensor, describe
from cklang.ir import rules
from cklang.ir.convolution import may_hold
from cklang.ir.numeric import Array
from cklang.ir.ops import OPS
from cklang.ir.windows import DIRECTIONS, Direction, Relation, Role

__all__ = ["conv", "conv_grad_input", "conv_grad_weight", "conv_transpose"]


def _convolution(scope: Scope, node: Located, op: str, arguments: Mapping[str, Item]) -> Tensor:
    """Put a convolution or one of its gradients into the IR."""
    called = op
    op, arguments = as_direction(called, arguments)
    direction = DIRECTIONS[op]
    a, b = (_tensor(scope, node, called, name, arguments[name]) for name in direction.names)
    groups = scope.unit.derived.number(arguments["groups"])
    if groups is not None:
        arguments["groups"] = groups
    if rules.GEMM_DTYPE.apply((a.dtype, b.dtype), {}) is None:
        problem = f"it does not take {a.dtype} and {b.dtype}"
        raise scope.error("F066", node, op=called, problem=problem, advice=rules.GEMM_DTYPE.text)
    layout = layout_of(arguments["layout"], (len(a.shape), len(b.shape)))
    if layout is not None:
        left, right = direction.operands
        a = emit.permute(scope, node, a, layout.perm(left))
        b = emit.permute(scope, node, b, layout.perm(right))
    call = read_call(op, a.shape, b.shape, arguments, layout)
    result = _Result(scope, node, op, call, (a, b))
    for relation in call.geometry.relations:
        result.add(relation)
    operands = [emit.materialise(scope, node, operand) for operand in (a, b)]
    shape = tuple(result.extents[axis] for axis in range(call.geometry.rank))
    origins = [result.origins[axis] for axis in range(call.geometry.rank)]
    value = scope.unit.append(op, *operands, attrs=call.attrs, shape=shape, span=scope.span(node))
    output = Tensor.plain(value, origins)
    return emit.permute(scope, node, output, call.layout.back(direction.result))


def _tensor(scope: Scope, node: Located, op: str, name: str, item: Item) -> Tensor:
    if isinstance(item, Tensor):
        return item
    problem, advice = f"{name} is {describe(item)}", "pass two tensors"
    raise scope.error("F066", node, op=op, problem=problem, advice=advice)


class _Result:
    """The result's extents, relation by relation."""

    def __init__(
        self, scope: Scope, node: Located, op: str, call: Call, operands: tuple[Tensor, Tensor]
    ) -> None:
        self.scope, self.node, self.op, self.call = scope, node, op, call
        self.missing = DIRECTIONS[op].result
        self.tensors = dict(zip(DIRECTIONS[op].operands, operands, strict=True))
        self.extents: dict[int, Extent] = {}
        self.origins: dict[int, str] = {}

    def add(self, relation: Relation) -> None:
        """Check the operands' extents of ``relation`` and add the result's, if it has one."""
        known = {
            role: self.tensors[role].shape[axis]
            for role, axis in relation.axes.items()
            if role is not self.missing
        }
        says_groups = relation.is_open and self.call.says_groups
        if relation.is_equality and not says_groups and not self._equal(list(known.values())):
            raise self.error(relation, known)
        axis = relation.axes.get(self.missing)
        if axis is None:
            if not may_hold(relation, self.missing, known):
                raise self.error(relation, known)
            return
        extent = self._extent(relation, axis, known)
        if not may_hold(relation, self.missing, known | {self.missing: extent}):
            raise self.error(relation, known, extent)
        self.extents[axis] = extent
        self.origins[axis] = self._origin(relation, known)

    def _equal(self, extents: list[Extent]) -> bool:
        derived = self.scope.unit.derived
        return all(derived.same(extents[0], extent) for extent in extents[1:])

    def _extent(self, relation: Relation, axis: int, known: Mapping[Role, Extent]) -> Extent:
        """Return the extent of the result along ``axis``: a number, a known dim or one of its own.

        Raises:
            CkError: F067, no number fits.
        """
        if self.call.size is not None and relation.window is not None:
            first = min(r.axes[self.missing] for r in self.call.geometry.relations if r.window)
            return self.call.size[axis - first]
        padded = self._padded(relation, axis, known)
        if padded is not None:
            return padded
        if relation.is_equality and not (relation.is_open and self.call.says_groups):
            return next(iter(known.values()))
        numbers = {role: extent for role, extent in known.items() if isinstance(extent, int)}
        if len(numbers) == len(known):
            allowed = relation.allowed(self.missing, numbers)
            if not allowed:
                raise self.error(relation, known)
            if len(allowed) == 1:
                return allowed[0]
        unmoved = self._unmoved(relation, known)
        if unmoved is not None:
            return unmoved

        def fits(other: Extent) -> bool:
            return may_hold(relation, self.missing, {**known, self.missing: other})

        key = (self.missing, relation.name, relation.window, relation.shared, *known.items())
        return self.scope.unit.derived.dim(relation.name, key, fits)

    def _padded(self, relation: Relation, axis: int, known: Mapping[Role, Extent]) -> Extent | None:
        """Return the extent of a transposed convolution's result where a stride leaves a choice."""
        longer, window = self.call.output_padding, relation.window
        if longer is None or window is None or window.stride == 1:
            return None
        numbers = {role: self.scope.unit.derived.number(e) for role, e in known.items()}
        output, weight = numbers[Role.OUTPUT], numbers[Role.WEIGHT]
        if output is None or weight is None:
            return None
        allowed = window.inputs(output, weight)
        first = min(r.axes[self.missing] for r in self.call.geometry.relations if r.window)
        if not allowed:
            raise self.error(relation, known)
        return allowed[longer[axis - first]]

    def _unmoved(self, relation: Relation, known: Mapping[Role, Extent]) -> Extent | None:
        """Return the operand's dim where the padding makes input and output the same."""
        weight, window = known.get(Role.WEIGHT), relation.window
        if window is None or window.stride > 1 or not isinstance(weight, int):
            return None
        (other,) = (extent for role, extent in known.items() if role is not Role.WEIGHT)
        return other if weight > 0 and window.room(0, weight) == -1 else None

    def _origin(self, relation: Relation, known: Mapping[Role, Extent]) -> str:
        if relation.is_equality:
            (role, axis) = next((r, a) for r, a in relation.axes.items() if r is not self.missing)
            return self.tensors[role].origins[axis]
        extents = ", ".join(f"{role.value} {extent}" for role, extent in known.items())
        return f"{relation.name} of ck.{self.op}: {relation.formula} ({extents})"

    def error(
        self, relation: Relation, known: Mapping[Role, Extent], got: Extent | None = None
    ) -> CkError:
        """Return the error for extents that do not fit."""
        extents = " and ".join(f"{extent} of {LETTERS[role]}" for role, extent in known.items())
        problem = f"along {relation.name}, {extents} do not fit"
        if got is not None:
            problem = f"along {relation.name}, {extents} do not give {got}"
        notes = [
            f"{extent} is {self.tensors[role].origins[relation.axes[role]]}"
            for role, extent in known.items()
        ]
        advice = f"rule: {relation.formula}\n{self.call.convention}"
        return self.scope.error(
            "F067", self.node, *notes, op=self.op, problem=problem, advice=advice
        )


def _computed(called: str, **arguments: Any) -> Array:
    name, arguments = as_direction(called, arguments)
    direction = DIRECTIONS[name]
    a, b = (as_array(arguments[operand]) for operand in direction.names)
    layout = layout_of(arguments["layout"], (a.ndim, b.ndim))
    if layout is not None:
        left, right = direction.operands
        a, b = a.transpose(layout.perm(left)), b.transpose(layout.perm(right))
    call = read_call(name, a.shape, b.shape, arguments, layout)
    shape = _result_shape(call, direction, (a.shape, b.shape))
    attrs: dict[str, Any] = dict(call.attrs)
    result = OPS[name].numpy(a, b, shape=shape, **attrs)
    return result.transpose(call.layout.back(direction.result))


def _result_shape(
    call: Call, direction: Direction, shapes: Sequence[tuple[int, ...]]
) -> tuple[int, ...]:
    tensors = dict(zip(direction.operands, shapes, strict=True))
    extents: dict[int, Any] = {}
    sizes: Iterator[Any] = iter(call.size or ())
    longer: Iterator[int | None] = iter(call.output_padding or (None,) * call.geometry.spatial)
    for relation in call.geometry.relations:
        known = {
            role: tensors[role][axis]
            for role, axis in relation.axes.items()
            if role is not direction.result
        }
        allowed = relation.allowed(direction.result, known)
        size = next(sizes) if call.size and relation.window else None
        extra = next(longer) if relation.window else None
        place = 0 if len(allowed) == 1 else extra
        choice = allowed[place] if allowed and size is None and place is not None else size
        if choice not in allowed:
            operand_extents = " and ".join(
                f"{role.value} {extent}" for role, extent in known.items()
            )
            problem = f"along {relation.name}, {operand_extents} do not decide the result's extent"
            if not allowed or size is not None:
                problem = f"along {relation.name}, {operand_extents} do not fit"
            raise ValueError(problem, f"rule: {relation.formula}\n{call.convention}")
        if direction.result in relation.axes:
            extents[relation.axes[direction.result]] = choice
    return tuple(extents[axis] for axis in range(call.geometry.rank))


_OPTIONS = "stride=1, padding=0, dilation=1, groups=None, spatial=None, layout=''"


def _registered(name: str, operands: str, doc: str, example: str, more: str = "") -> Intrinsic:
    def emitted(scope: Scope, node: Located, **arguments: Item) -> Tensor:
        return _convolution(scope, node, name, arguments)

    return Intrinsic(
        name,
        doc,
        emitted,
        partial(_computed, name),
        example=example,
        signature=f"{operands}, *, {_OPTIONS}{more}",
        has_windows=True,
    )


conv = _registered(
    "conv",
    "x, w",
    OPS["conv"].doc,
    """
    >>> x, w = np.ones((1, 5, 5, 3)), np.ones((2, 3, 3, 3))
    >>> y = ck.conv(x, w, stride=2, padding=1)
    >>> y.shape
    (1, 3, 3, 2)
    >>> y[0, :, :, 0]
    array([[12., 18., 12.],
           [18., 27., 18.],
           [12., 18., 12.]])
    """,
)
conv_grad_input = _registered(
    "conv_grad_input",
    "dy, w",
    OPS["conv_grad_input"].doc,
    """
    >>> dy, w = np.ones((1, 4, 4, 2)), np.ones((2, 3, 3, 8))
    >>> ck.conv_grad_input(dy, w, padding=1).shape
    (1, 4, 4, 8)
    """,
    ", size=None",
)
conv_grad_weight = _registered(
    "conv_grad_weight",
    "x, dy",
    OPS["conv_grad_weight"].doc,
    """
    >>> x, dy = np.ones((1, 4, 4, 8)), np.ones((1, 4, 4, 2))
    >>> ck.conv_grad_weight(x, dy, padding=1).shape
    (2, 3, 3, 8)
    """,
    ", size=None",
)
conv_transpose = _registered(
    "conv_transpose",
    "x, w",
    "the transposed convolution of x[N, …, K] by w[K, …, C/G], as torch's",
    """
    >>> x, w = np.ones((1, 4, 4, 2)), np.ones((2, 3, 3, 8))
    >>> ck.conv_transpose(x, w, stride=2, padding=1, output_padding=1).shape
    (1, 8, 8, 8)
    """,
    ", size=None, output_padding=0",
)
