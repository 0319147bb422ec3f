# SPDX-License-Identifier: MIT
"""What every family of kernels says of itself, and all that code outside a family knows of it.

A family is one way of computing: a product, a convolution, an attention, sums of rows. It has its
own records of a problem, a signature and an algorithm, and its own kernels; selection, building,
launching and tuning ask it by this protocol. ``docs/adding-a-family.md`` says how one is added.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from cklang.arch import ArchSpec
from cklang.codec import unknown
from cklang.device.arrays import Array
from cklang.device.resources import Resources
from cklang.families.grid import Grid, walk
from cklang.families.memory_cost import MemoryCost
from cklang.families.records import AxisOrders, Spelling, Supply, Tuning, Variants
from cklang.families.rule import RuleSet
from cklang.families.stage import Stage
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.functions import NO_FUNCTIONS, Functions
from cklang.fusion.passes import Fusion
from cklang.keys import AnyKey, KernelSignature, Key, opened
from cklang.lowering.source import KernelSource

DEFAULT_PRESET = "essential"
"""The few algorithms that a registry declares and a bundle holds if nobody names others."""

K = TypeVar("K")
S = TypeVar("S", bound=KernelSignature)
A = TypeVar("A")
P = TypeVar("P")

Times = npt.NDArray[np.float64]


class CostModel(Protocol):
    """Predicts what kernels of one signature take."""

    def times(self, problem: Any) -> Times:
        """Return the time of each kernel for a problem, in µs.

        Raises:
            CkUnsupportedError: N002, the GPU has no matrix rate for the element types.
        """

    def table(self, places: Sequence[int], problem: Any) -> list[str]:
        """Return the terms of the kernels at one or two places, as lines of text."""

    def terms(self, place: int, problem: Any) -> Mapping[str, float]:
        """Return what makes up the time of the kernel at a place, in µs; the sum is the time."""


class SelectionLike(Protocol):
    """What a family needs of a selection."""

    @property
    def key(self) -> AnyKey:
        """The kernel."""

    @property
    def functions(self) -> Functions:
        """What fills it."""

    @property
    def problem(self) -> Any:
        """What it is for, in the variant that was chosen."""

    @property
    def predicted(self) -> float | None:
        """The time of the kernel in µs, without that of its functions; None if no model knows."""


Sel = TypeVar("Sel", bound=SelectionLike)
SelOut = TypeVar("SelOut", bound=SelectionLike, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launches(Generic[Sel]):
    """A kernel that was selected, and the stages that compute its problem."""

    selection: Sel
    main: Stage
    before: tuple[Stage, ...] = ()
    """Kernels that prepare what it reads."""
    after: tuple[Stage, ...] = ()
    """Kernels that put what it writes where the program has it."""
    note: str = ""
    """What ``explain`` says of it besides."""
    band: int = 0
    """Its number among launches that compute parts of one result by one kernel."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All of them, in order."""
        return (*self.before, self.main, *self.after)


class Select(Protocol[SelOut]):
    """Selects the kernel of a problem."""

    def __call__(
        self, problem: Any, functions: Functions, adapt: Callable[[Any], Any] | None = None
    ) -> SelOut:
        """Return the kernel of ``problem`` with these functions.

        ``adapt`` makes of an algorithm that somebody named the one that is meant for it.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning(Generic[Sel]):
    """What a family is told when it plans the launches of one kernel of a program."""

    layouts: Mapping[str, TensorLayout]
    """How each value of the program lies in memory, by name."""
    dims: Mapping[str, int]
    spec: ArchSpec
    select: Select[Sel]
    """Selects the kernel of a problem with these functions."""
    fixed: Callable[[AnyKey, Any, Functions, str], Sel]
    """Returns the one kernel that there is for a problem: key, problem, functions, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operands:
    """Memory on which a kernel can be timed by itself: the bytes of each value, by name."""

    contents: Mapping[str, npt.NDArray[np.uint8]]
    stages: tuple[Stage, ...]
    """The launches that are timed: the kernel's, and those that a choice of it entails."""


class HostCheck(Protocol):
    """Something in host memory that each call checks before it launches."""

    def check(self, addresses: Sequence[int]) -> None:
        """Check a call whose arguments have these addresses.

        Raises:
            CkValueError: A056, an element is out of its range.
        """


class Family(Generic[K, S, A, P]):
    """A family of kernels. One instance of each stands in :data:`cklang.families.FAMILIES`."""

    name: ClassVar[str]
    signature: type[S]
    algorithm: type[A] | None
    """None of a family that has one kernel for each signature."""
    algorithm_text: ClassVar[str] = ""
    """How messages name an algorithm of the family."""
    compile_seconds: ClassVar[float] = 3.0
    """About how long a stencil takes to compile: the longest of a build are begun first."""

    fusion: Fusion = Fusion()
    """What it contributes to fusion: its anchors, passes and alternatives."""
    supply: Supply[S, A] = Supply()
    variants: Variants[P, A] = Variants()
    orders: AxisOrders[K] = AxisOrders()
    tuning: Tuning[K, P] = Tuning()
    spelling: Spelling[S, A, P] = Spelling()

    rules: RuleSet
    grid: Grid[A]

    def candidates(self, signature: S, spec: ArchSpec, preset: str) -> tuple[A, ...]:
        """Return the legal algorithms of a preset, best first; empty if none is.

        By itself a family has one preset, of all algorithms.

        Raises:
            CkValueError: K001, there is no such preset.
        """
        if preset != DEFAULT_PRESET:
            raise unknown("preset", preset, [DEFAULT_PRESET])
        return tuple(walk(self.grid, opened(signature), spec, self.grid.everything))

    def cost(
        self, keys: Sequence[Key[S, A]], spec: ArchSpec, built: Mapping[AnyKey, Resources]
    ) -> CostModel:
        """Return the cost model of kernels of one signature.

        ``built`` has what those of them take of the GPU that are known to be built.
        """
        raise NotImplementedError

    def function_time(
        self, problem: P, key: Key[S, A], functions: Functions, spec: ArchSpec
    ) -> float:
        """Return what computing the user's functions adds to a predicted time, in µs."""
        return 0.0

    def lower(self, key: Key[S, A], functions: Functions) -> KernelSource:
        """Return the source of a kernel.

        Raises:
            CkUnsupportedError: L rows, it cannot be generated.
        """
        raise NotImplementedError

    def problem(
        self, kernel: K, layouts: Mapping[str, TensorLayout], dims: Mapping[str, int]
    ) -> P | None:
        """Return the problem of a kernel of a program; None if its result has no element.

        Copies around the kernel are not part of it.

        Raises:
            CkError: A and I rows, arrays that no kernel of the family takes.
        """
        raise NotImplementedError

    def plan(self, kernel: K, planning: Planning[Sel]) -> Iterator[Launches[Sel]]:
        """Yield the launches of one kernel of a program; none if its result has no element.

        Raises:
            CkError: A and I rows, arrays that no kernel of the family takes; K101, K102.
        """
        raise NotImplementedError

    def host_check(
        self, kernel: K, arrays: Mapping[str, Array], dims: Mapping[str, int], place: str
    ) -> HostCheck | None:
        """Return what calls must check of a kernel's arguments, if there is something."""
        return None

    def algorithm_words(self, algorithm: A) -> str:
        """Return an algorithm as one line of text."""
        raise NotImplementedError

    def candidate_words(self, algorithm: A) -> str:
        """Return what tells an algorithm from other candidates, for a list of all of them.

        Empty of a family with so many candidates that ``explain`` counts rejections instead.
        """
        return ""

    def operands(self, problem: P, key: Key[S, A], functions: Functions) -> Operands:
        """Return memory and launches with which a kernel is timed by itself."""
        raise NotImplementedError


class HelperFamily(Family[K, S, None, P]):
    """A family that has one kernel for each signature, so there is nothing to choose."""

    algorithm = None
    rules = RuleSet(placeholder=None)
    why: ClassVar[str] = ""
    """What ``explain`` says of the one kernel of a problem."""

    def __init__(
        self,
        name: str,
        signature: type[S],
        lower: Callable[[Key[S, None], Functions], KernelSource],
    ) -> None:
        self.name = name  # type: ignore[misc]
        self.signature = signature
        self._lower = lower

    def lower(self, key: Key[S, None], functions: Functions) -> KernelSource:
        """Return the source of a kernel."""
        return self._lower(key, functions)

    def cost(
        self, keys: Sequence[Key[S, None]], spec: ArchSpec, built: Mapping[AnyKey, Resources]
    ) -> CostModel:
        """Return the model of a launch and its bytes: problems of the family have ``bytes``."""
        return MemoryCost(keys, spec)

    def plan(self, kernel: K, planning: Planning[Sel]) -> Iterator[Launches[Sel]]:
        """Yield the one launch of a kernel, which calls no functions."""
        problem: Any = self.problem(kernel, planning.layouts, planning.dims)
        if problem is not None:
            key: Key[S, None] = Key(problem.signature, None, planning.spec.name)
            selection = planning.fixed(key, problem, NO_FUNCTIONS, self.why)
            yield Launches(selection=selection, main=self.stage(kernel, problem, key))

    def stage(self, kernel: K, problem: P, key: Key[S, None]) -> Stage:
        """Return the launch of a kernel."""
        raise NotImplementedError
