# SPDX-License-Identifier: MIT
"""What only some families say of themselves, in records: each default is that of the others."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from cklang.arch import ArchSpec
from cklang.codec import encode
from cklang.families.launch_operands import LaunchOperands, RandomValues
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.functions import NO_FUNCTIONS, Functions
from cklang.ir.nodes import Function, Value
from cklang.keys import AnyKey, KernelSignature, Key

K = TypeVar("K")
S = TypeVar("S", bound=KernelSignature)
A = TypeVar("A")
P = TypeVar("P")

HostArray = npt.NDArray[Any]
Layouts: TypeAlias = Mapping[str, TensorLayout]


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply(Generic[S, A]):
    """The algorithms of a problem for which nobody declared a kernel."""

    presets: bool = False
    """Whether those of another preset than the essential are candidates too."""
    narrowed: Callable[[Sequence[A], S], Iterable[A]] = lambda _candidates, _signature: ()
    """Returns algorithms that are slower than candidates and take more problems, where no candidate
    is legal."""
    shares: Callable[[Any, Sequence[A], ArchSpec], Iterable[A]] = lambda _problem, _legal, _spec: ()
    """Returns, of a problem with too few tiles for a GPU, algorithms like legal ones whose
    workgroups share the sums of a tile."""
    kind: Callable[[A], object] = lambda algorithm: algorithm
    """Returns what algorithms have in common whose predicted times are wrong together."""
    models_resources: bool = False
    """Whether the cost model asks for the registers and the LDS of built kernels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variants(Generic[P, A]):
    """Ways of computing a problem that have signatures of their own."""

    gain: float = 1.0
    """A variant must take at most this fraction of the first one's time."""
    of: Callable[[P, int | None], tuple[P, ...]] = lambda problem, _splits: (problem,)
    """Returns the variants that are worth comparing, the plain one first, of a problem and the
    number of workgroups among which somebody asked to share its sums."""
    words: Callable[[P], str] = lambda _problem: "in one"
    """Returns how messages call a variant: ``in 4 splits``."""
    clamped: Callable[[P, A], P] = lambda problem, _algorithm: problem
    """Returns the variant that an algorithm can compute nearest to the one given."""
    unmodelled: Callable[[P, A, ArchSpec], P] = lambda problem, _algorithm, _spec: problem
    """Returns the variant for an algorithm that no cost model knows."""
    functions: Callable[[P, Functions], Functions] = lambda _problem, functions: functions
    """Returns those of a kernel's functions that the kernel of a variant calls."""
    splits: Callable[[P], int] = lambda _problem: 1
    """Returns among how many workgroups a variant shares its sums."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisOrders(Generic[K]):
    """In which order of axes kernels read and write memory; orders are from the outermost."""

    own: Callable[[K, Layouts], Sequence[int] | None] = lambda _kernel, _layouts: None
    """Returns the order in which a temporary result is best laid out, from the layouts of what the
    kernel reads; None for the program's."""
    kept: Callable[[K, Callable[[Value], Sequence[int] | None]], tuple[int, ...] | None] = (
        lambda _kernel, _order_of: None
    )
    """Returns the order in which users expect a new result; None for that of its shape.

    It is told the axes longer than 1 of operands in memory, None if they lie as their shapes."""
    reader: Callable[[K, Value], Sequence[int] | None] = lambda _kernel, _value: None
    """Returns the order in which a kernel best reads a temporary; None if it reads any alike. The
    kernel that writes it decides."""
    matrices: Callable[[K], tuple[Value, ...]] = lambda _kernel: ()
    """Returns what a kernel reads only where one of its axes is contiguous."""
    can_write: Callable[[K, Value, Sequence[int]], bool] = lambda _kernel, _value, _order: False
    """Tells whether a kernel writes a temporary result in an order."""


def _missing(*_: object) -> Any:
    raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning(Generic[K, P]):
    """How kernels are timed and compared."""

    own_layouts: Callable[[K, Layouts, Mapping[str, int]], Layouts] = (
        lambda _kernel, layouts, _dims: layouts
    )
    """Returns the layouts as a kernel itself sees them, copies around it made."""
    launches: Callable[[K, P], Iterator[tuple[K, P]]] = lambda kernel, problem: iter(
        ((kernel, problem),)
    )
    """Yields the kernels and problems of the launches that compute the problem of a kernel."""
    measurable: Callable[[P], bool] = lambda _problem: True
    """Tells whether the kernel of a problem is launched at all."""
    facts: Callable[[P], Any] = encode
    """Returns all that a problem's cost depends on, as plain data; names are not part of it."""
    as_function: Callable[[K], Function] = _missing
    """Returns a kernel as a function of its own, which the reference can evaluate."""
    compared: Callable[[K, Sequence[HostArray], Sequence[HostArray]], float] | None = None
    """Returns the largest error of a kernel in units of its bound; None for that of all elements
    of :attr:`as_function`."""
    timed_by_launch: bool = False
    """Whether one launch of a kernel is timed by itself, not a call of its op."""
    launch_operands: Callable[[K, P, RandomValues], LaunchOperands] = _missing
    """Returns random operands of one launch, of a family that is timed so."""
    part: Callable[[K, Mapping[str, int]], Mapping[str, int]] = lambda _kernel, dims: dims
    """Returns the extents of a part of a call that is compared where all would take long."""
    lists: Callable[[K, P, Mapping[str, tuple[int, ...]]], Mapping[str, npt.NDArray[np.int32]]] = (
        lambda _kernel, _problem, _sizes: {}
    )
    """Returns what a kernel reads of lengths and places, by name, where random ones are wrong; it
    is told the shape of each input."""

    def error_ratio(
        self, kernel: K, inputs: Sequence[HostArray], results: Sequence[HostArray]
    ) -> float:
        """Return the largest error of a kernel in units of its bound: at most 1 if it is right."""
        if self.compared is not None:
            return self.compared(kernel, inputs, results)
        from cklang.reference.bounds import evaluate_with_bound
        from cklang.reference.distance import largest_ratio

        wanted, bounds = evaluate_with_bound(self.as_function(kernel), list(inputs))
        return max(map(largest_ratio, results, wanted, bounds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling(Generic[S, A, P]):
    """Signatures and algorithms that somebody wrote by hand."""

    usual: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda data: data
    """Returns the JSON form of a signature with what follows from its other fields."""
    plain_functions: Callable[[S], Functions | None] = lambda _signature: NO_FUNCTIONS
    """Returns the functions of a kernel for which nobody named any; None if it needs some."""
    completed: Callable[[A, S], A] = lambda algorithm, _signature: algorithm
    """Returns an algorithm with a value for all that a signature asks of it."""
    tiling: Callable[[Key[S, A]], object] = lambda key: key
    """Returns what kernels have in common that differ in the width of accesses alone."""
    problem: Callable[[str, tuple[int, int, int]], tuple[P, Functions]] = _missing
    """Returns a problem of some extents whose signature stands on a command line, and functions
    for it; raises K001 or K043-K046 if the text is no signature."""
    profile: Callable[
        [str, ArchSpec, Sequence[str] | None, Sequence[int] | None],
        Iterator[tuple[AnyKey, Functions]],
    ] = _missing
    """Yields the kernels that one kind of user needs, by name, GPU, dtypes and head sizes; raises
    K001 if there is no such profile."""
