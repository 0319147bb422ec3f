# SPDX-License-Identifier: MIT
"""What every family of kernels says of itself, and all that code outside a family knows of it.

A family is one way of computing: a product, a convolution, an attention, sums of rows. It has its
own records of a problem, a signature and an algorithm, and its own kernels; selection, building,
launching and tuning ask it by this protocol. ``docs/adding-a-family.md`` says how one is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from cklang.arch import ArchSpec
from cklang.codec import with_defaults
from cklang.device.arrays import Array
from cklang.device.resources import Resources
from cklang.families.grid import Grid
from cklang.families.launch_operands import LaunchOperands, RandomValues
from cklang.families.memory_cost import MemoryCost
from cklang.families.rule import RuleSet
from cklang.families.stage import Stage
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.functions import NO_FUNCTIONS, Functions
from cklang.fusion.passes import Fusion
from cklang.ir.nodes import Function, Value
from cklang.keys import AnyKey, KernelSignature, Key
from cklang.lowering.source import KernelSource

__all__ = [
    "DEFAULT_PRESET",
    "CostModel",
    "Family",
    "HelperFamily",
    "HostArray",
    "HostCheck",
    "Launches",
    "OnDemand",
    "Operands",
    "Planning",
    "ProblemLike",
    "SelectionLike",
]

DEFAULT_PRESET = "essential"
"""The few algorithms that a registry declares and a bundle holds if nobody names others."""

S = TypeVar("S", bound=KernelSignature)
A = TypeVar("A")
P = TypeVar("P")

Times = npt.NDArray[np.float64]
HostArray = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDemand(Generic[A]):
    """The candidates of a problem for which nobody declared a kernel."""

    algorithms: tuple[A, ...]
    """Best first; those of the preset ``essential`` before all others."""
    essential: int
    """How many those are."""
    preset: str
    """Where they come from."""


class ProblemLike(Protocol):
    """A problem of any family."""

    @property
    def signature(self) -> Any:
        """The signature of the kernels that compute it."""


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


class Family(Generic[S, A, P]):
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

    def completed_signature(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the JSON form of a signature with the fields that were left out."""
        return with_defaults(self.signature, data)

    def plain_functions(self, signature: S) -> Functions | None:
        """Return the functions of a kernel for which nobody named any; None if it needs some."""
        return NO_FUNCTIONS

    rules: RuleSet
    grid: Grid[A]
    models_resources: ClassVar[bool] = False
    """Whether the cost model asks for the registers and the LDS of built kernels."""

    def candidates(self, signature: S, spec: ArchSpec, preset: str) -> tuple[A, ...]:
        """Return the legal algorithms of a preset, best first; empty if none is.

        Raises:
            CkValueError: K001, there is no such preset.
        """
        raise NotImplementedError

    def on_demand(self, signature: S, spec: ArchSpec, preset: str) -> OnDemand[A]:
        """Return the candidates of a problem for which nobody declared a kernel.

        Args:
            signature: What is to be computed.
            spec: The GPU.
            preset: Which ones beside the essential, in a family that has several presets.

        Raises:
            CkValueError: K001, there is no such preset.
        """
        essential = self.candidates(signature, spec, DEFAULT_PRESET)
        return OnDemand(algorithms=essential, essential=len(essential), preset=DEFAULT_PRESET)

    def last_resorts(self, signature: S, spec: ArchSpec) -> tuple[A, ...]:
        """Return legal algorithms that are slower than the candidates and take more problems.

        They are candidates where none of :meth:`on_demand` is legal. Most families have none.
        """
        return ()

    def cost(
        self, keys: Sequence[Key[S, A]], spec: ArchSpec, built: Mapping[AnyKey, Resources]
    ) -> CostModel:
        """Return the cost model of kernels of one signature.

        Args:
            keys: The kernels.
            spec: The GPU.
            built: What those of them take of the GPU that are known to be built.
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

    # --- variants of a problem: ways of computing it that have signatures of their own

    gain: ClassVar[float] = 1.0
    """A variant must take at most this fraction of the first one's time."""

    def variants(self, problem: P, splits: int | None) -> tuple[P, ...]:
        """Return the variants that are worth comparing, the plain one first.

        Args:
            problem: What is to be computed.
            splits: Among how many workgroups somebody asked to share its sums, if that is a
                variant.
        """
        return (problem,)

    def variant_words(self, problem: P) -> str:
        """Return how messages call a variant: ``in 4 splits``."""
        return "in one"

    def clamped(self, problem: P, algorithm: A) -> P:
        """Return the variant that an algorithm can compute nearest to the one given."""
        return problem

    def unmodelled(self, problem: P, algorithm: A, spec: ArchSpec) -> P:
        """Return the variant for an algorithm that the cost model cannot price."""
        return problem

    def functions_of(self, problem: P, functions: Functions) -> Functions:
        """Return those of a kernel's functions that the kernel of a variant calls."""
        return functions

    # --- launches

    def problem(
        self, kernel: Any, layouts: Mapping[str, TensorLayout], dims: Mapping[str, int]
    ) -> P | None:
        """Return the problem of a kernel of a program; None if its result has no element.

        Copies around the kernel are not part of it.

        Raises:
            CkError: A and I rows, arrays that no kernel of the family takes.
        """
        raise NotImplementedError

    def launches(self, kernel: Any, problem: P) -> Iterator[tuple[Any, P]]:
        """Yield the kernels and problems of the launches that compute the problem of a kernel."""
        yield kernel, problem

    def plan(self, kernel: Any, planning: Planning[Sel]) -> Iterator[Launches[Sel]]:
        """Yield the launches of one kernel of a program; none if its result has no element.

        Raises:
            CkError: A and I rows, arrays that no kernel of the family takes; K101, K102.
        """
        raise NotImplementedError

    def own_order(self, kernel: Any) -> Sequence[int] | None:
        """Return the order of axes, outermost first, in which a temporary result is best laid out.

        None for the order of the program.
        """
        return None

    def kept_order(
        self, kernel: Any, order_of: Callable[[Value], Sequence[int] | None]
    ) -> tuple[int, ...] | None:
        """Return the order of axes, outermost first, in which users expect a new result.

        None for the order of its shape.

        Args:
            kernel: What fusion made.
            order_of: Gives the axes longer than 1 of an operand in memory, outermost first; None
                if they lie as its shape has them.
        """
        return None

    def reader_order(self, kernel: Any, value: Value) -> Sequence[int] | None:
        """Return the order of axes in which a kernel best reads ``value``, a temporary.

        None if it reads any order alike. The kernel that writes the value decides
        (:meth:`can_write`).
        """
        return None

    def matrices(self, kernel: Any) -> tuple[Value, ...]:
        """Return what a kernel reads only where one of its axes is contiguous."""
        return ()

    def can_write(self, kernel: Any, value: Value, order: Sequence[int]) -> bool:
        """Tell whether a kernel writes a temporary result with its axes in this order."""
        return False

    def own_layouts(
        self, kernel: Any, layouts: Mapping[str, TensorLayout], dims: Mapping[str, int]
    ) -> Mapping[str, TensorLayout]:
        """Return the layouts as the kernel itself sees them, copies around it made."""
        return layouts

    def host_check(
        self, kernel: Any, arrays: Mapping[str, Array], dims: Mapping[str, int], place: str
    ) -> HostCheck | None:
        """Return what calls must check of a kernel's arguments, if there is something.

        Args:
            kernel: What fusion made.
            arrays: The arguments of a call by name, in order.
            dims: The extents of the call.
            place: Where they are.
        """
        return None

    def algorithm_words(self, algorithm: A) -> str:
        """Return an algorithm as one line of text."""
        raise NotImplementedError

    def candidate_words(self, algorithm: A) -> str:
        """Return what tells an algorithm from other candidates, for a list of all of them.

        Empty of a family with so many candidates that ``explain`` counts rejections instead.
        """
        return ""

    # --- algorithms that somebody named

    def completed_algorithm(self, algorithm: A, signature: S) -> A:
        """Return an algorithm with a value for all that a signature asks of it."""
        return algorithm

    def tiling(self, key: Key[S, A]) -> object:
        """Return what kernels have in common that differ in the width of accesses alone."""
        return key

    def spelled(self, text: str, extents: tuple[int, int, int] = (1, 1, 1)) -> tuple[P, Functions]:
        """Return a problem whose signature stands on a command line, and functions for it.

        Args:
            text: The signature.
            extents: Of the problem.

        Raises:
            CkValueError: K001, K043-K046, ``text`` is no signature.
        """
        raise NotImplementedError

    def profile(
        self, name: str, spec: ArchSpec, dtypes: Sequence[str] | None, heads: Sequence[int] | None
    ) -> Iterator[tuple[Key[S, A], Functions]]:
        """Yield the kernels that one kind of user needs.

        Raises:
            CkValueError: K001, there is no such profile.
        """
        raise NotImplementedError

    # --- tuning

    def as_function(self, kernel: Any) -> Function:
        """Return a kernel as a function of its own, which the reference can evaluate."""
        raise NotImplementedError

    def error_ratio(
        self, kernel: Any, inputs: Sequence[HostArray], results: Sequence[HostArray]
    ) -> float:
        """Return the largest error of a kernel in units of its bound: at most 1 if it is right.

        Args:
            kernel: The kernel that computed ``results``.
            inputs: The value of each of ``kernel.inputs``.
            results: Those of ``kernel.results``.
        """
        from cklang.reference.bounds import evaluate_with_bound
        from cklang.reference.distance import largest_ratio

        wanted, bounds = evaluate_with_bound(self.as_function(kernel), list(inputs))
        return max(map(largest_ratio, results, wanted, bounds))

    timed_by_launch: ClassVar[bool] = False
    """Whether tuning times one launch of a kernel by itself, not a call of its op."""

    def launch_operands(self, kernel: Any, problem: P, values: RandomValues) -> LaunchOperands:
        """Return random operands of one launch, of a family that is timed so."""
        raise NotImplementedError

    def part(self, kernel: Any, dims: Mapping[str, int]) -> Mapping[str, int]:
        """Return the extents of a part of a call that is compared where all would take long."""
        return dims

    def lists(
        self, kernel: Any, problem: P, sizes: Mapping[str, tuple[int, ...]]
    ) -> Mapping[str, npt.NDArray[np.int32]]:
        """Return what a kernel reads of lengths and places, by name, where random ones are wrong.

        Args:
            kernel: What fusion made.
            problem: What it computes.
            sizes: The shape of each of its inputs.
        """
        return {}

    def splits(self, problem: P) -> int:
        """Return among how many workgroups a variant shares its sums, if that is a variant."""
        return 1

    def operands(self, problem: P, key: Key[S, A], functions: Functions) -> Operands:
        """Return memory and launches with which a kernel is timed by itself."""
        raise NotImplementedError

    def measurable(self, problem: P) -> bool:
        """Whether the kernel of a problem is launched at all."""
        return True

    def problem_facts(self, problem: P) -> Any:
        """Return all that a problem's cost depends on, as plain data; names are not part of it."""
        raise NotImplementedError


class HelperFamily(Family[S, None, P]):
    """A family that has one kernel for each signature, so there is nothing to choose."""

    algorithm = None
    rules = RuleSet(placeholder=None)

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
