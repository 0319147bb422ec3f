# SPDX-License-Identifier: MIT
"""The arguments of ``ck.conv`` and its gradients: what users write becomes attributes of an op."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from cklang.dims import is_integer
from cklang.frontend.values import Item, describe
from cklang.ir.nodes import Attr
from cklang.ir.windows import (
    DIRECTIONS,
    MAX_SPATIAL,
    SPATIAL_NAMES,
    Direction,
    Geometry,
    Role,
    geometry,
)
from cklang.types import Dim

Extent = Dim | int

_CONVENTION = {
    False: "x [N, …, C] and y [N, …, K] count the channels of all groups, w [K, …, C/G] on its "
    "last axis those of one",
    True: "groups are an axis: x [N, …, G, C], w [G, K, …, C], y [N, …, G, K], and C and K count "
    "the channels of one group",
}
"""What C and K count, by whether groups have an axis of their own; named in every message."""

_FIRST = {
    False: "x [N, C, …] and y [N, K, …] count the channels of all groups, w [K, C/G, …] on its "
    "second axis those of one",
    True: "groups are an axis: x [N, G, C, …], w [G, K, C, …], y [N, G, K, …], and C and K count "
    "the channels of one group",
}
"""The same where channels stand before the axes in space."""

LETTERS = {Role.INPUT: "x", Role.WEIGHT: "w", Role.OUTPUT: "y"}
"""What messages call the tensors."""

TRANSPOSE = "conv_transpose"
"""The name of ``conv_grad_input`` where the result's extents follow from the operands'."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What a name such as ``nchw`` says of input and output; the weight has its axes likewise."""

    spatial: int
    apart: bool
    """Whether groups have an axis of their own."""
    first: bool
    """Whether channels stand before the axes in space."""

    def perm(self, role: Role) -> tuple[int, ...]:
        """Return the axes of a tensor in the order that has the channels last."""
        rank = self.spatial + 2 + self.apart
        if not self.first:
            return tuple(range(rank))
        # Groups move along with the channels but of a weight, which they begin.
        before = 1 + (self.apart and role is Role.WEIGHT)
        space = range(rank - self.spatial, rank)
        return (*range(before), *space, *range(before, rank - self.spatial))

    def back(self, role: Role) -> tuple[int, ...]:
        """Return the axes of a tensor with the channels last in the order of this layout."""
        perm = self.perm(role)
        return tuple(perm.index(axis) for axis in range(len(perm)))


def _layouts() -> dict[str, Layout]:
    layouts = {}
    for spatial in range(1, MAX_SPATIAL + 1):
        space = "".join(SPATIAL_NAMES[-spatial:]).lower()
        for apart, channels in ((False, "c"), (True, "gc")):
            for first, rest in ((False, space + channels), (True, channels + space)):
                layouts["n" + rest] = Layout(spatial=spatial, apart=apart, first=first)
    return layouts


LAYOUTS: Mapping[str, Layout] = MappingProxyType(_layouts())
"""What ``layout=`` may say."""


def layout_of(name: Item, ranks: Sequence[int]) -> Layout | None:
    """Return what ``layout=`` says of operands of these ranks; None if it says nothing.

    Raises:
        ValueError: With the problem and what to do about it.
    """
    if not name:
        return None
    layout = LAYOUTS.get(name) if isinstance(name, str) else None
    if layout is None:
        raise ValueError(f"layout is {_shown(name)}", f"legal: {', '.join(LAYOUTS)}")
    rank = layout.spatial + 2 + layout.apart
    if any(count != rank for count in ranks):
        counts = " and ".join(map(str, ranks))
        raise ValueError(f"layout {name} has {rank} axes, the operands {counts}", _said(layout))
    return layout


def _said(layout: Layout) -> str:
    return (_FIRST if layout.first else _CONVENTION)[layout.apart]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call with its numbers read."""

    geometry: Geometry
    attrs: Mapping[str, Attr]
    size: tuple[Extent, ...] | None
    says_groups: bool
    """Whether the call says how many groups there are, though it be one."""
    layout: Layout
    output_padding: tuple[int, ...] | None = None
    """For a transposed convolution without ``size``: how far each axis of its result is longer than
    the shortest that gives the operand."""

    @property
    def convention(self) -> str:
        """What channels its tensors count."""
        return _said(self.layout)


def read_call(
    op: str,
    a: Sequence[Extent],
    b: Sequence[Extent],
    arguments: Mapping[str, Item],
    layout: Layout | None = None,
) -> Call:
    """Read the arguments of a convolution of operands of these shapes, channels last.

    Without a ``layout`` nothing is said about where its arrays have the channels.

    Raises:
        ValueError: With the problem and what to do about it.
    """
    direction = DIRECTIONS[op]
    if layout is None:
        spatial = _spatial(direction, a, b, arguments)
    else:
        # Counted like the entries of other arguments, with which it must agree.
        spatial = _spatial(direction, a, b, {**arguments, "layout": (None,) * layout.spatial})
    apart = len(a) - spatial == 3
    groups = 1 if arguments["groups"] is None else arguments["groups"]
    attrs: dict[str, Any] = {
        name: _each(name, arguments[name], spatial) for name in ("stride", "dilation")
    }
    attrs |= {"padding": _padding(arguments["padding"], spatial)}
    attrs |= {"groups": _integer("groups", groups, 1)}
    if apart and groups != 1:
        raise ValueError(f"groups={groups} beside an axis of groups", _CONVENTION[True])
    conv = geometry(**attrs, rank=len(a))
    if conv is None:
        raise ValueError(f"{attrs} is no convolution of rank {len(a)}", _CONVENTION[apart])
    size = _size(arguments.get("size"), spatial)
    longer = _longer(arguments, size, attrs["stride"])
    says_groups = arguments["groups"] is not None
    layout = layout or Layout(spatial=spatial, apart=apart, first=False)
    return Call(
        geometry=conv,
        attrs=attrs,
        size=size,
        says_groups=says_groups,
        layout=layout,
        output_padding=longer,
    )


def as_direction(op: str, arguments: Mapping[str, Item]) -> tuple[str, dict[str, Item]]:
    """Return an op of the IR and its arguments for a function of the language."""
    if op != TRANSPOSE:
        return op, dict(arguments)
    return "conv_grad_input", {"dy" if name == "x" else name: e for name, e in arguments.items()}


def _longer(
    arguments: Mapping[str, Item], size: object, stride: Sequence[int]
) -> tuple[int, ...] | None:
    """Return the output padding of a transposed convolution that says nothing of its size."""
    value = arguments.get("output_padding")
    if value is None:
        return None
    values = value if isinstance(value, tuple) else (value,) * len(stride)
    longer = tuple(_integer("output_padding", item, 0) for item in values)
    if any(extra >= step for extra, step in zip(longer, stride, strict=True)):
        problem = f"output_padding is {_shown(value)} beside stride {_shown(tuple(stride))}"
        raise ValueError(problem, "legal: less than the stride of each axis")
    if size is None:
        return longer
    if any(longer):
        raise ValueError("size and output_padding both say how long the result is", "give one")
    return None


def _spatial(
    direction: Direction, a: Sequence[Extent], b: Sequence[Extent], arguments: Mapping[str, Item]
) -> int:
    """Return how many spatial axes there are: as the arguments, else as the ranks and dims say."""
    names = direction.names
    if len(a) != len(b):
        problem = f"{names[0]} has rank {len(a)} and {names[1]} rank {len(b)}"
        raise ValueError(problem, f"{_CONVENTION[False]}; or {_CONVENTION[True]}")
    counts = {
        name: len(value)
        for name, value in arguments.items()
        if isinstance(value, tuple) and name not in names
    }
    if arguments["spatial"] is not None:
        counts["spatial"] = _integer("spatial", arguments["spatial"], 1)
    rank = len(a)
    if counts:
        lengths = set(counts.values())
        (spatial, *others) = lengths
        if others:
            listed = ", ".join(f"{name} {count}" for name, count in counts.items())
            problem = f"the numbers of spatial axes differ: {listed}"
            raise ValueError(problem, "give one entry for each spatial axis")
    else:
        spatial = rank - 2 - _is_apart(direction, a, b, arguments)
    if not 1 <= spatial <= MAX_SPATIAL or rank - spatial not in (2, 3):
        problem = f"{names[0]} and {names[1]} of rank {rank} with {spatial} spatial axes"
        raise ValueError(problem, f"legal: one to three; {_CONVENTION[False]}")
    return spatial


def _is_apart(
    direction: Direction, a: Sequence[Extent], b: Sequence[Extent], arguments: Mapping[str, Item]
) -> bool:
    """Tell whether groups have an axis of their own where no argument counts the axes."""
    rank = len(a)
    if arguments["groups"] is not None or rank <= 3:
        return False
    if rank > MAX_SPATIAL + 2:
        return True
    if Role.WEIGHT not in direction.operands:
        return False  # x and y alone look the same in both forms
    channels = -1 if direction.result is Role.OUTPUT else 1
    if a[-2] != b[0] or a[-1] != b[channels]:
        return False
    if isinstance(a[-2], Dim):
        return True
    problem = f"{direction.names[0]} and {direction.names[1]} of rank {rank} fit both conventions"
    advice = f"write spatial={rank - 2}: {_CONVENTION[False]}\nor spatial={rank - 3}: "
    raise ValueError(problem, advice + _CONVENTION[True])


def _integer(name: str, value: Item, least: int) -> int:
    if is_integer(value) and value >= least:
        return value
    raise ValueError(f"{name} is {_shown(value)}", f"legal: a constant integer of {least} or more")


def _shown(value: Item) -> str:
    constant = isinstance(value, bool | int | float | str | tuple)
    return repr(value) if constant else describe(value)


def _each(name: str, value: Item, spatial: int) -> tuple[int, ...]:
    values = value if isinstance(value, tuple) else (value,) * spatial
    return tuple(_integer(name, item, 1) for item in values)


def _padding(value: Item, spatial: int) -> tuple[tuple[int, int], ...]:
    values = value if isinstance(value, tuple) else (value,) * spatial
    pairs = [item if isinstance(item, tuple) else (item, item) for item in values]
    if any(len(pair) != 2 for pair in pairs):
        form = "legal: 1 for all sides, (1, 2) for each axis, ((0, 1), (2, 2)) for before and after"
        raise ValueError(f"padding is {_shown(value)}", form)
    return tuple((_integer("padding", a, 0), _integer("padding", b, 0)) for a, b in pairs)


def _size(value: Item, spatial: int) -> tuple[Extent, ...] | None:
    if value is None:
        return None
    if not isinstance(value, tuple):
        names = ", ".join(SPATIAL_NAMES[-spatial:])
        form = f"legal: an extent for each spatial axis, size=({names}{',' * (spatial == 1)})"
        problem = f"size is {_shown(value)}"
        raise ValueError(problem, form)  # noqa: TRY004 - becomes F067, a value error
    return tuple(e if isinstance(e, Dim) else _integer("size", e, 0) for e in value)
