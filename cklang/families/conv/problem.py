# SPDX-License-Identifier: MIT
"""One launch of a convolution as numbers: what :mod:`cklang.families.gemm.problem` is for products.

Every tensor is seen with six axes, whatever the program's arrays have: groups apart, space as z, y
and x. Axes that a tensor lacks have extent 1 and stride 0. Strides decide nothing but whether the
channels are contiguous, and how each epilogue operand is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields

from cklang.codec import unknown
from cklang.errors import error
from cklang.families.conv.plan import FusedConv
from cklang.families.gemm.key import (
    ConvSpecial,
    DKind,
    DOperand,
    Layout,
    ProductKind,
    Signature,
    accumulator,
)
from cklang.families.gemm.kinds import KINDS
from cklang.families.gemm.problem import Operand
from cklang.families.tensor_layout import (
    TensorLayout,
    packed_strides,
    refuse_negative,
    refuse_overlap,
)
from cklang.frontend.ops.conv_arguments import read_call
from cklang.ir.convolution import geometry_of
from cklang.ir.windows import DIRECTIONS, Geometry, Relation, Role
from cklang.types import DType, f16

Space = tuple[int, int, int]
"""A number for each axis z, y and x."""

Axes = tuple[int, int, int, int, int, int]
"""A number for each axis of a tensor."""

_AXES = 6
_KINDS = {
    "conv": ProductKind.CONV,
    "conv_grad_input": ProductKind.CONV_GRAD_INPUT,
    "conv_grad_weight": ProductKind.CONV_GRAD_WEIGHT,
}
_ROLES = {
    # Those of A, B and E.
    ProductKind.CONV: (Role.INPUT, Role.WEIGHT, Role.OUTPUT),
    ProductKind.CONV_GRAD_INPUT: (Role.OUTPUT, Role.WEIGHT, Role.INPUT),
    ProductKind.CONV_GRAD_WEIGHT: (Role.OUTPUT, Role.INPUT, Role.WEIGHT),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvTensor(Operand):
    """A tensor of a convolution; its strides are in elements.

    Axes of the input are n, z, y, x, g, c; of the weight g, k, z, y, x, c; of the output n, z, y,
    x, g, k.
    """

    strides: Axes
    span: int
    """Elements from the first to the last, gaps included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvRead(ConvTensor):
    """An epilogue operand, along the axes of the result; 0 where it does not change."""

    kind: DKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvExtents:
    """The extents of a convolution, whose tensors have six axes."""

    spatial: int
    """Axes in space, 1 to 3; the others have extent 1, stride 1, dilation 1 and no padding."""
    images: int
    groups: int
    features: int
    """Features of one group."""
    channels: int
    """Channels of one group."""
    input: Space
    output: Space
    window: Space
    stride: Space = (1, 1, 1)
    dilation: Space = (1, 1, 1)
    before: Space = (0, 0, 0)
    after: Space = (0, 0, 0)

    def extents(self, role: Role) -> tuple[int, ...]:
        """Return the extents of the six axes of a tensor.

        Example:
            >>> problem = ck.dispatch.conv_problem((2, 32, 32, 64), (128, 3, 3, 64), padding=1)
            >>> problem.extents(problem.result)  # n, z, y, x, g, k
            (2, 1, 32, 32, 1, 128)
        """
        if role is Role.WEIGHT:
            return (self.groups, self.features, *self.window, self.channels)
        if role is Role.INPUT:
            return (self.images, *self.input, self.groups, self.channels)
        return (self.images, *self.output, self.groups, self.features)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvProblem(ConvExtents):
    """One launch of a convolution: all that rules and the host shim need to know.

    Example:
        >>> problem = ck.dispatch.conv_problem((2, 32, 32, 64), (128, 3, 3, 64), padding=1)
        >>> print(problem)
        conv of 2 images 32x32, channels 64 to 128, window 3x3, padding 1x1 before, 1x1 after
        >>> {role.value: tensor.value for role, tensor in problem.tensors.items()}
        {'input': 'A', 'weight': 'B', 'output': 'E'}
        >>> problem.inputs == (problem.a, problem.b, problem.e), problem.roles[2] is problem.result
        (True, True)
        >>> print(problem.signature.words)
        f16 by f16 to f16, layouts rcr, epilogue operands none
    """

    kind: ProductKind
    a: ConvTensor
    b: ConvTensor
    e: ConvTensor
    d: tuple[ConvRead, ...] = ()
    functions: str
    """Digest of the epilogue."""
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Selections are remembered by problem: a call must not hash all fields each time.
        spaces = (self.input, self.output, self.window, self.stride, self.dilation, self.before)
        counts = (self.images, self.groups, self.features, self.channels)
        parts = (self.kind, spaces, counts, self.a, self.b, self.e, self.d, self.functions)
        object.__setattr__(self, "_hash", hash(parts))

    def __hash__(self) -> int:
        return self._hash

    @property
    def inputs(self) -> tuple[ConvTensor, ...]:
        """All that a kernel reads or writes, in the order of its pointers: A, B, E, D."""
        return (self.a, self.b, self.e, *self.d)

    @property
    def roles(self) -> tuple[Role, Role, Role]:
        """The roles of A, B and E: input, weight or output."""
        return _ROLES[self.kind]

    @property
    def tensors(self) -> dict[Role, ConvTensor]:
        """A, B and E by role."""
        return dict(zip(_ROLES[self.kind], (self.a, self.b, self.e), strict=True))

    @property
    def result(self) -> Role:
        """The role of E."""
        return _ROLES[self.kind][2]

    def product(self, merged: int = 1) -> tuple[int, int, int, int]:
        """Return the equivalent matrix products: their number, and M, N and K of each.

        With ``merged`` groups in a tile the weights are blocks on a diagonal. Each phase of the
        stride is a product in the gradient of the input; M and K are the mean of all.

        Example:
            >>> problem.product()
            (1, 2048, 128, 576)
            >>> problem.products, problem.m, problem.n, problem.k
            (1, 2048, 128, 576)
        """
        groups = -(-self.groups // merged)
        taps, phases = math.prod(self.window), math.prod(self.stride)
        features, channels = self.features * merged, self.channels * merged
        if self.kind is ProductKind.CONV:
            return groups, self.images * math.prod(self.output), features, taps * channels
        if self.kind is ProductKind.CONV_GRAD_WEIGHT:
            return groups, features, taps * channels, self.images * math.prod(self.output)
        rows = -(-self.images * math.prod(self.input) // phases)
        return groups * phases, rows, channels, -(-taps * features // phases)

    @property
    def unique_fraction(self) -> tuple[float, float]:
        """The share of the products' A and B that is stored: several taps read the same element.

        The share is at most 1, also where padding or the stride leaves elements out.

        Example:
            >>> a, b = problem.unique_fraction
            >>> round(1 / a), b  # 9 taps read each pixel
            (9, 1.0)
        """
        parts = []
        for tensor, rows in zip(self.roles[:2], (self.m, self.n), strict=True):
            stored = math.prod(self.extents(tensor))
            parts.append(min(1.0, stored / max(self.products * rows * self.k, 1)))
        return parts[0], parts[1]

    @property
    def m(self) -> int:
        """Rows of a product."""
        return self.product()[1]

    @property
    def products(self) -> int:
        """The number of products."""
        return self.product()[0]

    @property
    def n(self) -> int:
        """Columns of a product."""
        return self.product()[2]

    @property
    def k(self) -> int:
        """Depth of a product."""
        return self.product()[3]

    @property
    def specials(self) -> frozenset[ConvSpecial]:
        """The specialisations of kernels that fit its extents; rules check the strides.

        Example:
            >>> sorted(special.value for special in problem.specials)
            ['default']
        """
        specials = {ConvSpecial.DEFAULT}
        inside = range(3 - self.spatial, 3)
        if all(self.window[i] == 1 and not self.before[i] + self.after[i] for i in inside):
            specials.add(ConvSpecial.POINTWISE)
            if all(self.stride[i] == 1 for i in inside):
                specials.add(ConvSpecial.POINTWISE_PACKED)
        if self.features == self.channels == 1 and all(self.window[i] == 3 for i in inside):
            specials.add(ConvSpecial.DEPTHWISE)
        return frozenset(specials)

    @property
    def signature(self) -> Signature:
        """The signature of the kernels that can compute it."""
        layouts = [Layout(letter) for letter in KINDS[self.kind].layouts]
        return Signature(
            kind=self.kind,
            dtype_a=self.a.dtype,
            dtype_b=self.b.dtype,
            dtype_acc=accumulator(self.a.dtype),
            dtype_e=self.e.dtype,
            layout_a=layouts[0],
            layout_b=layouts[1],
            layout_e=layouts[2],
            d=tuple(DOperand(dtype=d.dtype, kind=d.kind) for d in self.d),
            spatial=self.spatial,
            functions=self.functions,
        )

    def __str__(self) -> str:
        def shown(space: Space) -> str:
            return "x".join(map(str, space[3 - self.spatial :]))

        groups = f" in {self.groups} groups" if self.groups > 1 else ""
        words = [
            f"{self.kind.value} of {self.images} images {shown(self.input)}",
            f"channels {self.groups * self.channels} to {self.groups * self.features}{groups}",
            f"window {shown(self.window)}",
        ]
        numbers = {"stride": self.stride, "dilation": self.dilation}
        words += [f"{name} {shown(v)}" for name, v in numbers.items() if v != (1, 1, 1)]
        if any(self.before) or any(self.after):
            words.append(f"padding {shown(self.before)} before, {shown(self.after)} after")
        return ", ".join(words)


# --- from a call


def conv_problem_of(
    kernel: FusedConv,
    storage: Mapping[str, TensorLayout],
    dims: Mapping[str, int],
    functions: str,
    *,
    anywhere: bool = False,
) -> ConvProblem | None:
    """Return the problem of one launch, or None if its result has no element.

    ``anywhere``: channels may be on any axis in memory.
    """
    operation = kernel.operation
    direction, geometry = DIRECTIONS[operation.op], geometry_of(operation)
    if geometry is None:
        raise error("Z002", what=f"{operation.op} is no convolution")
    types = dict(zip(direction.operands, (v.type for v in operation.operands), strict=True))
    types[direction.result] = operation.result.type
    shapes = {role: type_.extents(dims) for role, type_ in types.items()}
    if 0 in shapes[direction.result]:
        return None
    conv = _Convolution.of(geometry, shapes, anywhere=anywhere)
    tensors = {
        role: conv.tensor(role, view.value.name, storage[view.value.name], view.perm)
        for role, view in zip(direction.operands, (kernel.a, kernel.b), strict=True)
    }
    name, result = kernel.result.name, direction.result
    refuse_overlap(storage[name])
    tensors[result] = conv.tensor(result, name, storage[name], kernel.axes)
    values = ((read.value.name, read.axes) for read in kernel.reads)
    reads = tuple(conv.read(result, value, storage[value], axes) for value, axes in values)
    return conv.problem(_KINDS[operation.op], tensors, reads, functions)


def _along(storage: TensorLayout, axes: Iterable[int | None]) -> list[int]:
    """Return the stride along each axis of a kernel; an axis of extent 1 takes no step."""
    return [0 if a is None or storage.shape[a] == 1 else storage.strides[a] for a in axes]


@dataclass(frozen=True, slots=True)
class _Convolution:
    """A convolution, whose tensors are brought to six axes."""

    extents: ConvExtents
    apart: bool
    """Whether groups have an axis of their own."""
    anywhere: bool
    """Whether channels need not be contiguous."""

    @staticmethod
    def of(
        geometry: Geometry, shapes: Mapping[Role, Sequence[int]], *, anywhere: bool = False
    ) -> _Convolution:
        """Read the extents off the shapes of the three tensors."""
        first, last = geometry.apart + 1, geometry.rank - 1
        weight, windows = shapes[Role.WEIGHT], geometry.windows
        spatial = slice(1, 1 + geometry.spatial)
        extents = ConvExtents(
            spatial=geometry.spatial,
            images=shapes[Role.INPUT][0],
            groups=weight[0] if geometry.apart else geometry.groups,
            features=weight[first - 1] // geometry.groups,
            channels=weight[last],
            input=_space(shapes[Role.INPUT][spatial]),
            output=_space(shapes[Role.OUTPUT][spatial]),
            window=_space(weight[first : first + geometry.spatial]),
            stride=_space([window.stride for window in windows]),
            dilation=_space([window.dilation for window in windows]),
            before=_space([window.before for window in windows], 0),
            after=_space([window.after for window in windows], 0),
        )
        return _Convolution(extents, bool(geometry.apart), anywhere)

    def problem(
        self,
        kind: ProductKind,
        tensors: Mapping[Role, ConvTensor],
        reads: tuple[ConvRead, ...],
        functions: str,
    ) -> ConvProblem:
        """Return the problem of these tensors."""
        a, b, e = (tensors[role] for role in _ROLES[kind])
        extents = {f.name: getattr(self.extents, f.name) for f in fields(self.extents)}
        return ConvProblem(**extents, kind=kind, a=a, b=b, e=e, d=reads, functions=functions)

    def _strides(self, role: Role, layout: TensorLayout, axes: Iterable[int | None]) -> Axes:
        """Return the strides along the six axes; ``axes`` are the layout's of the program's."""
        refuse_negative(layout)
        steps = _along(layout, axes)
        spatial, extents = self.extents.spatial, self.extents.extents(role)
        missing = [0] * (3 - spatial)
        if role is Role.WEIGHT:
            # Groups within the channels: the features of a group are adjacent.
            outer = steps[:2] if self.apart else (steps[0] * self.extents.features, steps[0])
            full = (*outer, *missing, *steps[len(steps) - 1 - spatial :])
        else:
            inner = steps[-2:] if self.apart else (steps[-1] * extents[-1], steps[-1])
            full = (steps[0], *missing, *steps[1 : 1 + spatial], *inner)
        return _axes(0 if n == 1 else step for step, n in zip(full, extents, strict=True))

    def tensor(
        self, role: Role, value: str, layout: TensorLayout, axes: Iterable[int | None]
    ) -> ConvTensor:
        """Return an operand or the result."""
        strides, extents = self._strides(role, layout, axes), self.extents.extents(role)
        if extents[-1] > 1 and strides[-1] != 1 and not self.anywhere:
            raise error("A036", name=layout.name, shape=layout.shape, strides=layout.strides)
        return ConvTensor(
            value=value,
            dtype=layout.dtype,
            alignment=layout.alignment,
            strides=strides,
            span=_span(extents, strides),
        )

    def read(
        self, role: Role, value: str, layout: TensorLayout, axes: Iterable[int | None]
    ) -> ConvRead:
        """Return an operand of the epilogue of a result with this role."""
        strides, extents = self._strides(role, layout, axes), self.extents.extents(role)
        return ConvRead(
            value=value,
            dtype=layout.dtype,
            alignment=layout.alignment,
            strides=strides,
            span=_span(extents, strides),
            kind=_kind(role, extents, strides),
        )


def _axes(values: Iterable[int]) -> Axes:
    first, second, third, fourth, fifth, sixth = values
    return first, second, third, fourth, fifth, sixth


def _space(values: Sequence[int], missing: int = 1) -> Space:
    z, y, x = (missing,) * (3 - len(values)) + tuple(values)
    return z, y, x


def _span(extents: Sequence[int], strides: Sequence[int]) -> int:
    if 0 in extents:
        return 0
    return 1 + sum((n - 1) * stride for n, stride in zip(extents, strides, strict=True))


def _kind(role: Role, extents: Sequence[int], strides: Sequence[int]) -> DKind:
    """Return how an operand is read: along the rows and columns of the product of one group.

    Rows are pixels and columns channels, of weights features and taps with channels.
    """
    axes = list(zip(extents, strides, strict=True))
    rows, columns = (axes[1:2], axes[2:]) if role is Role.WEIGHT else (axes[:4], axes[5:])
    along_m, along_n = (any(stride for _, stride in part) for part in (rows, columns))
    if not along_n:
        # An operand without steps is read like the result, in which they are all the same.
        return DKind.COLUMN if along_m else DKind.SCALAR
    if not _is_row(columns):
        return DKind.STRIDED
    return DKind.FULL if along_m else DKind.ROW


def _is_row(axes: Sequence[tuple[int, int]]) -> bool:
    """Tell whether axes are one with stride 1."""
    step = 1
    for extent, stride in reversed(axes):
        if extent > 1 and stride != step:
            return False
        step *= extent
    return True


# --- without arrays


def conv_problem(
    x: Sequence[int],
    w: Sequence[int],
    *,
    direction: str = "conv",
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | tuple[int, int]] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int | None = None,
    spatial: int | None = None,
    dtype: DType = f16,
    e: DType | None = None,
    alignment: int = 4,
    d: Sequence[tuple[DType, DKind]] = (),
    functions: str = "",
) -> ConvProblem:
    """Make the problem of a convolution without arrays, as if all were packed.

    Args:
        x: Extents of the input, [N, …, C] or with groups apart [N, …, G, C].
        w: Extents of the weight, [K, …, C/G] or [G, K, …, C].
        direction: ``conv``, or ``conv_grad_input`` or ``conv_grad_weight`` of the same convolution.
        stride: As :func:`cklang.conv` takes it; so are the next four.
        padding: Zeros on the sides.
        dilation: Steps from tap to tap.
        groups: Groups within the channels.
        spatial: How many axes in space.
        dtype: Element type of the operands.
        e: Of the result; that of the operands if left out.
        alignment: Of every address, in bytes.
        d: Element type and kind of each epilogue operand; all packed.
        functions: Digest of its functions.

    Example:
        >>> problem = ck.dispatch.conv_problem(
        ...     (2, 32, 32, 64), (128, 3, 3, 64), stride=2, padding=1
        ... )
        >>> problem.m, problem.n, problem.k  # pixels, features, channels of 9 taps
        (512, 128, 576)

    Raises:
        CkValueError: F067, the numbers make no convolution; K001, a direction that does not exist.
    """
    if direction not in _KINDS:
        raise unknown("direction", direction, list(_KINDS))
    numbers = {"stride": stride, "padding": padding, "dilation": dilation}
    arguments: dict[str, object] = {
        name: tuple(v) if isinstance(v, list) else v for name, v in numbers.items()
    }
    arguments |= {"groups": groups, "spatial": spatial}
    try:
        call = read_call("conv", tuple(x), tuple(w), arguments)
        output = _output(call.geometry.relations, tuple(x), tuple(w))
    except ValueError as refusal:
        problem, advice = refusal.args
        raise error("F067", op="conv", problem=problem, advice=advice) from None
    shapes = {Role.INPUT: tuple(x), Role.WEIGHT: tuple(w), Role.OUTPUT: output}
    kind = _KINDS[direction]
    conv = _Convolution.of(call.geometry, shapes)
    tensors = {}
    for letter, role in zip("ABE", _ROLES[kind], strict=True):
        layout = TensorLayout(
            name=letter,
            dtype=(e or dtype) if letter == "E" else dtype,
            shape=shapes[role],
            strides=packed_strides(shapes[role]),
            alignment=alignment,
        )
        tensors[role] = conv.tensor(role, letter, layout, range(len(layout.shape)))
    result = _ROLES[kind][2]
    reads = tuple(
        _packed_read(f"D{i}", conv.extents, result, type_, kind, alignment)
        for i, (type_, kind) in enumerate(d)
    )
    return conv.problem(kind, tensors, reads, functions)


def _output(
    relations: Sequence[Relation], x: tuple[int, ...], w: tuple[int, ...]
) -> tuple[int, ...]:
    shapes: dict[Role, tuple[int, ...]] = {Role.INPUT: x, Role.WEIGHT: w}
    extents: dict[int, int] = {}
    for relation in relations:
        known: dict[Role, int] = {
            role: shapes[role][axis] for role, axis in relation.axes.items() if role in shapes
        }
        allowed = relation.allowed(Role.OUTPUT, known)
        if not allowed:
            sizes = " and ".join(f"{role.value} {extent}" for role, extent in known.items())
            raise ValueError(f"along {relation.name}, {sizes} do not fit", relation.formula)
        if Role.OUTPUT in relation.axes:
            extents[relation.axes[Role.OUTPUT]] = allowed[0]
    return tuple(extents[axis] for axis in range(len(x)))


def _packed_read(
    name: str, conv: ConvExtents, role: Role, dtype: DType, kind: DKind, alignment: int
) -> ConvRead:
    """Return an operand that is packed along the axes that its kind has."""
    weight = role is Role.WEIGHT
    columns = (0, 2, 3, 4, 5) if weight else (4, 5)
    runs = {
        DKind.FULL: range(_AXES),
        DKind.STRIDED: range(_AXES),
        DKind.ROW: columns,
        DKind.COLUMN: (0, 1) if weight else range(4),
        DKind.SCALAR: (),
    }[kind]
    extents, strides = conv.extents(role), [0] * _AXES
    step = 2 if kind is DKind.STRIDED else 1
    for axis in reversed(runs):
        strides[axis] = step if extents[axis] > 1 else 0
        step *= extents[axis]
    return ConvRead(
        value=name,
        dtype=dtype,
        alignment=alignment,
        strides=_axes(strides),
        span=_span(extents, strides),
        kind=kind,
    )
