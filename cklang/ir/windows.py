# SPDX-License-Identifier: MIT
"""The geometry of a convolution: which extents of input, weight and output belong together.

A convolution has three tensors, in memory as CK Tile orders them, ``C`` and ``K`` innermost::

    groups beside the channels     input [N, …, G, C]   weight [G, K, …, C]   output [N, …, G, K]
    groups within the channels     input [N, …, C]      weight [K, …, C/G]    output [N, …, K]

where … are the one to three spatial axes. In the first form C and K count the channels of one
group; in the second they count all channels, and the weight's last axis alone those of one group.

Each of its ops computes one of the three from the other two. A *relation* ties one axis of each;
what it allows for the missing one is exactly one extent, or several where a stride skips elements.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

MAX_SPATIAL = 3
SPATIAL_NAMES = ("D", "H", "W")
"""The spatial axes of three; fewer are the last ones."""


class Role(Enum):
    """What a tensor is to the convolution, whichever of them is computed."""

    INPUT = "input"
    WEIGHT = "weight"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """One op: the roles of its operands and of its result, and the user's names of the operands."""

    operands: tuple[Role, Role]
    result: Role
    names: tuple[str, str]


DIRECTIONS: Mapping[str, Direction] = MappingProxyType(
    {
        "conv": Direction(operands=(Role.INPUT, Role.WEIGHT), result=Role.OUTPUT, names=("x", "w")),
        "conv_grad_input": Direction(
            operands=(Role.OUTPUT, Role.WEIGHT), result=Role.INPUT, names=("dy", "w")
        ),
        "conv_grad_weight": Direction(
            operands=(Role.INPUT, Role.OUTPUT), result=Role.WEIGHT, names=("x", "dy")
        ),
    }
)
"""The convolution ops by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """How the weight moves along one spatial axis; ``before`` and ``after`` count zeros."""

    stride: int = 1
    before: int = 0
    after: int = 0
    dilation: int = 1

    def reach(self, weight: int) -> int:
        """Return how many elements ``weight`` taps span, holes included."""
        return self.dilation * (weight - 1) + 1

    def room(self, length: int, weight: int) -> int:
        """Return how far the window can move along an input of ``length`` elements."""
        return length + self.before + self.after - self.reach(weight)

    def outputs(self, length: int, weight: int) -> Sequence[int]:
        """Return the output's extent, or nothing if the window is longer than the padded input."""
        room = self.room(length, weight)
        if weight < 1 or room < 0:
            return ()
        return (room // self.stride + 1,)

    def inputs(self, output: int, weight: int) -> Sequence[int]:
        """Return the extents of inputs that give ``output``."""
        if output < 1 or weight < 1:
            return ()
        least = (output - 1) * self.stride + self.reach(weight) - self.before - self.after
        return tuple(least + more for more in range(self.stride) if least + more >= 0)

    def weights(self, length: int, output: int) -> Sequence[int]:
        """Return the extents of weights that give ``output`` from an input of ``length``."""
        if output < 1:
            return ()
        # What lies between the first tap and the last: at most, and at least.
        most = length + self.before + self.after - 1 - (output - 1) * self.stride
        if self.stride == self.dilation == 1:
            return (most + 1,) if most >= 0 else ()
        least = most + 1 - self.stride
        first = max(-(-least // self.dilation), 0) + 1
        return range(first, max(most // self.dilation + 2, first))


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """One axis of each tensor that has it, and how their extents depend on each other."""

    name: str
    axes: Mapping[Role, int]
    window: Window | None = None
    shared: int = 1
    """Groups that the input's axis holds together, of channels."""
    divisor: int = 1
    """What must divide the extent."""
    is_open: bool = False
    """Whether dims of different names may be equal all the same; the call checks it."""

    def allowed(self, missing: Role, known: Mapping[Role, int]) -> Sequence[int]:
        """Return what the extent of ``missing`` may be beside the ``known`` ones."""
        if self.window is not None:
            return self._windowed(self.window, missing, known)
        if self.shared > 1:
            part = known.get(Role.WEIGHT, known.get(Role.INPUT, 0) // self.shared)
            if known.get(Role.INPUT, part * self.shared) != part * self.shared:
                return []
            return [part * self.shared if missing is Role.INPUT else part]
        first, *others = known.values()
        fits = all(other == first for other in others) and first % self.divisor == 0
        return [first] if fits else []

    @staticmethod
    def _windowed(window: Window, missing: Role, known: Mapping[Role, int]) -> Sequence[int]:
        if missing is Role.OUTPUT:
            return window.outputs(known[Role.INPUT], known[Role.WEIGHT])
        if missing is Role.INPUT:
            return window.inputs(known[Role.OUTPUT], known[Role.WEIGHT])
        return window.weights(known[Role.INPUT], known[Role.OUTPUT])

    @property
    def is_equality(self) -> bool:
        """Whether all its extents are the same number."""
        return self.window is None and self.shared == 1

    @property
    def formula(self) -> str:
        """The relation in words of extents, for messages."""
        if self.window is not None:
            w, weight = self.window, self.weight_name
            return (
                f"output = (input + {w.before} + {w.after} - {w.dilation} * ({weight} - 1) - 1)"
                f" // {w.stride} + 1"
            )
        if self.shared > 1:
            return f"C of the input = {self.shared} groups * C/G of the weight"
        if self.divisor > 1:
            return f"K is a multiple of {self.divisor} groups"
        return f"{self.name} is the same in both"

    @property
    def weight_name(self) -> str:
        """What the weight's axis is called."""
        return dict(zip(SPATIAL_NAMES, "ZYX", strict=True)).get(self.name, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """A convolution without its extents."""

    windows: tuple[Window, ...]
    groups: int = 1
    """Groups within the channels; 1 where they have an axis of their own."""
    apart: bool = False
    """Whether groups have an axis of their own."""
    relations: tuple[Relation, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "relations", tuple(self._relations()))

    @property
    def spatial(self) -> int:
        """How many spatial axes there are."""
        return len(self.windows)

    @property
    def rank(self) -> int:
        """The rank of each of its tensors."""
        return self.spatial + 2 + self.apart

    def _relations(self) -> Iterator[Relation]:
        last, first = self.rank - 1, self.apart + 1
        yield Relation(name="N", axes={Role.INPUT: 0, Role.OUTPUT: 0})
        if self.apart:
            axes = {Role.INPUT: last - 1, Role.WEIGHT: 0, Role.OUTPUT: last - 1}
            yield Relation(name="G", axes=axes)
        names = SPATIAL_NAMES[-self.spatial :]
        for place, (name, window) in enumerate(zip(names, self.windows, strict=True)):
            axes = {Role.INPUT: 1 + place, Role.WEIGHT: first + place, Role.OUTPUT: 1 + place}
            yield Relation(name=name, axes=axes, window=window)
        axes = {Role.WEIGHT: first - 1, Role.OUTPUT: last}
        yield Relation(name="K", axes=axes, divisor=self.groups)
        axes = {Role.INPUT: last, Role.WEIGHT: last}
        # A program may leave the number of groups to a constant, which may be 1.
        yield Relation(name="C", axes=axes, shared=self.groups, is_open=not self.apart)


def geometry(
    stride: Sequence[int],
    padding: Sequence[Sequence[int]],
    dilation: Sequence[int],
    groups: int,
    rank: int,
) -> Geometry | None:
    """Return the geometry of tensors of ``rank`` axes, or None if the numbers describe none.

    Args:
        stride: Elements of the input from one output element to the next, for each spatial axis.
        padding: Zeros before and after the input, for each spatial axis.
        dilation: Elements of the input from one tap of the weight to the next.
        groups: Groups within the channels; 1 where they have an axis of their own.
        rank: Of each of the three tensors.
    """
    spatial = len(stride)
    lengths = {len(padding), len(dilation)}
    if not 1 <= spatial <= MAX_SPATIAL or lengths != {spatial} or rank - spatial not in (2, 3):
        return None
    apart = rank - spatial == 3
    pairs = all(len(pair) == 2 and min(pair) >= 0 for pair in padding)
    if not pairs or min(*stride, *dilation, groups) < 1 or (apart and groups > 1):
        return None
    windows = tuple(
        Window(stride=s, before=before, after=after, dilation=d)
        for s, (before, after), d in zip(stride, padding, dilation, strict=True)
    )
    return Geometry(windows=windows, groups=groups, apart=apart)
