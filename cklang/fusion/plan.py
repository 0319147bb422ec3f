# SPDX-License-Identifier: MIT
"""What fusion decides: the kernels of a function in launch order, and why it is these.

The dataclasses here are what lowering and the runtime consume. :func:`cklang.fusion.passes.fused`
makes them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

from cklang.fusion.functions import NO_FUNCTIONS, Functions
from cklang.fusion.svg import to_svg
from cklang.ir.nodes import Function, Value, print_function
from cklang.source import Span
from cklang.types import Dim

if TYPE_CHECKING:
    import networkx as nx

MAX_READS = 8
"""Most operands of one function of a kernel; CK Tile's own examples and our host shim go no
further."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A D operand: ``value`` read once per element (…, m, n) of the result.

    ``axes`` has the axis of ``value`` that runs with each axis of the kernel, batch axes first,
    then m and n; None if the value does not change. In a kernel without a batch ``bias[N]`` is
    ``(None, 0)``, ``bias[:, None]`` ``(0, None)``, a matrix ``(0, 1)``, its transpose ``(1, 0)``,
    a scalar ``(None, None)``. An axis of ``value`` that is not in ``axes`` has extent 1.
    """

    value: Value
    axes: tuple[int | None, ...]

    def indexed(self, names: Sequence[str]) -> str:
        """Return it as text, with a name for each axis of the kernel: ``%res[n, h, w, k]``."""
        return _named(self.value, self.axes, names)

    def __str__(self) -> str:
        return _indexed(self.value, self.axes, "mn")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """An A or B operand: ``value`` with its axes in the order ``perm``.

    Before the last two entries of ``perm`` stand the axes that run with the kernel's batch, None
    where the matrix is the same for all of it. The last two give [M, K] for A and [K, N] for B;
    ``(1, 0)`` is a transposed view. A None among them is an axis of extent 1 that is not stored.
    A product over several axes has an entry for each of them in the place of K.
    """

    value: Value
    perm: tuple[int | None, ...] = (0, 1)

    @property
    def reads(self) -> tuple[Read, ...]:
        """What is read of memory, as for an operand that is computed: the matrix itself."""
        return (Read(value=self.value, axes=self.perm),)

    @property
    def tensor(self) -> str:
        """As text where axes are not those of a matrix: with its axes if they are not in order."""
        if self.perm == tuple(range(self.value.type.rank)):
            return str(self.value)
        return f"{self.value} by axes {', '.join('1' if i is None else str(i) for i in self.perm)}"

    def __str__(self) -> str:
        if self.perm in ((0, 1), (1, 0)) and self.value.type.rank == 2:
            return f"{self.value}{'.T' if self.perm == (1, 0) else ''}"
        return _indexed(self.value, self.perm, "rc")

    def indexed(self, names: Sequence[str]) -> str:
        """Return it as text, with a name for each entry of ``perm``: ``%o[b0, k0, m, k1]``."""
        return _named(self.value, self.perm, names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered(View):
    """An A operand whose rows are those of ``value``, a table, at indices.

    Axis ``axis`` of the table is read at ``indices``, so ``perm`` has None for the rows. ``copy``
    is the operand as the program has it: what is stored where no kernel reads at indices.
    """

    axis: int
    indices: Read
    copy: View

    @property
    def reads(self) -> tuple[Read, ...]:
        """What is read of memory: the table, then the indices."""
        return (Read(value=self.value, axes=self.perm), self.indices)

    def __str__(self) -> str:
        return str(self.copy)

    def gathered(self, names: Sequence[str]) -> str:
        """Return it as text, with a name for each axis of the kernel: ``%x[%rows[m], k]``."""
        index = dict(zip(self.perm, names, strict=True))
        index[self.axis] = self.indices.indexed(names)
        inside = ", ".join(index.get(axis, "0") for axis in range(self.value.type.rank))
        return f"{self.value}[{inside}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockScale:
    """The scales of A or B: the axes of ``view`` are those of its matrix, counted in blocks.

    ``block`` is (rows, K) of A and (K, columns) of B.
    """

    view: View
    block: tuple[int, int]

    def __str__(self) -> str:
        return f"{self.view} by blocks of {self.block[0]} x {self.block[1]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """An A or B operand that a function computes, element by element, as the kernel loads it.

    ``value`` is the operand in the program, ``extents`` are its rows and columns as the kernel
    sees them: [M, K] of A, [K, N] of B, with an extent for each axis that is summed over. Each
    read's ``axes`` run with the kernel's batch axes and then with these.
    """

    value: Value
    extents: tuple[Dim | int, ...]
    reads: tuple[Read, ...]

    def __str__(self) -> str:
        return str(self.value)


def _indexed(value: Value, axes: tuple[int | None, ...], last: str) -> str:
    """Return ``value`` indexed by the kernel's axes: ``%x[b0, m, n]``."""
    return _named(value, axes, [*(f"b{place}" for place in range(len(axes) - 2)), *last])


def _named(value: Value, axes: tuple[int | None, ...], names: Sequence[str]) -> str:
    index = {axis: name for axis, name in zip(axes, names, strict=True) if axis is not None}
    inside = ", ".join(index.get(axis, "0") for axis in range(value.type.rank))
    return f"{value}[{inside}]"


class AnyKernel(Protocol):
    """A kernel of any family, as fusion made it."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def family(self) -> str:
        """The family that computes it."""

    @property
    def leaves_to_readers(self) -> bool:
        """Whether who reads its results may compute them instead, from what it reduces."""

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values that it reads, each once."""

    @property
    def results(self) -> tuple[Value, ...]:
        """The values that it writes."""

    @property
    def anchors(self) -> tuple[str, ...]:
        """The names of the program's values that it computes by itself, without a function."""

    @property
    def functions(self) -> Functions:
        """The user's functions that it calls."""

    @property
    def spans(self) -> tuple[Span, ...]:
        """The user's places in it."""

    def renamed(self, name: str) -> AnyKernel:
        """Return the same kernel with another name."""

    def lines(self) -> Iterator[str]:
        """Yield what it computes as lines of text."""


Kernel = TypeVar("Kernel", bound="FusedKernel")


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedKernel:
    """What the kernels of all families have alike, as fusion made them."""

    name: str
    spans: tuple[Span, ...] = field(default=(), compare=False)
    """The user's places in it."""

    leaves_to_readers: ClassVar[bool] = False

    @property
    def functions(self) -> Functions:
        """None: it calls no function of the user's."""
        return NO_FUNCTIONS

    def renamed(self: Kernel, name: str) -> Kernel:
        """Return the same kernel with another name."""
        return replace(self, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A use of a value in the graph: from node to node, as operand number ``operand``."""

    source: int
    target: int
    operand: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided for one edge: ``fused`` if the value stays in registers.

    ``rule`` is the id of the rule that decided (:data:`cklang.fusion.kernel.RULES` has their
    sentences), ``reason`` its sentence for this edge.
    """

    edge: Edge
    fused: bool
    reason: str
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The kernels of ``function`` in launch order, the decisions, and the graph they are about."""

    function: Function
    kernels: tuple[AnyKernel, ...]
    decisions: tuple[Decision, ...]
    notes: tuple[str, ...] = ()
    """What else was decided, as sentences."""

    graph: nx.MultiDiGraph = field(compare=False, repr=False)
    """What the partition was computed on (:mod:`cklang.fusion.graph`)."""

    def _repr_svg_(self) -> str:
        """Draw the graph in a notebook."""
        uses = [
            (
                (decision.edge.source, decision.edge.target, decision.edge.operand),
                decision.fused,
                decision.reason,
            )
            for decision in self.decisions
        ]
        return to_svg(self.function.name, self.graph, uses)


def numbered(name: str, kernels: Sequence[AnyKernel]) -> tuple[AnyKernel, ...]:
    """Return the kernels of a program under its name, with a number each if there are several."""
    if len(kernels) == 1:
        return (kernels[0].renamed(name),)
    return tuple(kernel.renamed(f"{name}_{i}") for i, kernel in enumerate(kernels))


def epilogue_text(epilogue: Function) -> str:
    """Return the canonical text of a region that fusion made: no spans, one spelling."""
    return print_function(epilogue)


def epilogue_hash(epilogue: Function) -> str:
    """Return the SHA-256 (hex) of a region's canonical text: its identity in keys."""
    return hashlib.sha256(epilogue_text(epilogue).encode()).hexdigest()
