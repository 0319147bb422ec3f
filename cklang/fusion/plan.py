# SPDX-License-Identifier: MIT
"""What fusion decides: the kernels of a function in launch order, and why it is these.

The dataclasses here are what lowering and the runtime consume. :func:`cklang.fusion.partition.plan`
makes them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias

from cklang.fusion.functions import Functions
from cklang.fusion.parts import split
from cklang.fusion.svg import to_svg
from cklang.ir.log_sums import LOG_SUMS
from cklang.ir.nodes import Function, Operation, Value, print_function
from cklang.source import Span
from cklang.types import Dim

if TYPE_CHECKING:
    import networkx as nx

__all__ = [
    "MAX_READS",
    "AnyKernel",
    "BlockScale",
    "Computed",
    "Decision",
    "Edge",
    "FusedConv",
    "FusedGemm",
    "Kernel",
    "Plan",
    "Read",
    "View",
    "epilogue_hash",
    "epilogue_text",
]

MAX_READS = 8
"""Most operands of one function of a kernel; CK Tile's own examples and our host shim go no
further."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A D operand: ``value`` read once per element (…, m, n) of the result.

    ``axes`` has the axis of ``value`` that runs with each axis of the kernel, batch axes first,
    then m and n; None where the value does not change. In a kernel without a batch ``bias[N]`` is
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedGemm:
    """One kernel: ``result = cast(epilogue(a @ b, reads…))``.

    With ``scale_a`` or ``scale_b`` the sum over each block of K is multiplied by them.

    ``a``, ``b`` and ``reads`` name parameters of the function or results of earlier kernels.
    ``epilogue`` is a region of rank-0 values in canonical form: parameters ``%acc`` (f32, or i32
    of an integer product), then ``%d0``, ``%d1``… one for each read in order (narrow floats arrive
    widened to f32, others as they are), one result: i32 where integers are stored, else f32. The
    store rounds f32 to ``result.type.dtype``: the only cast that is not in the region. Operations
    of the region carry the user's spans.

    If ``a`` is computed, the region goes on with parameters ``%a0``… for its reads and one more
    result, its element, which is rounded to the operand's dtype in the same way; so for ``b``.
    :attr:`functions` takes the region apart.

    Of a pair ``b2`` is a second B, and the epilogue takes ``%acc1`` after ``%acc``: a @ b2.

    ``more`` are further results: the epilogue gives one value for each after that of ``result``,
    and ``axes`` of each say which of its axes runs with each axis of the kernel, as for reads.

    ``axes`` are the result's axes in the order of the kernel's: batch axes, then rows and columns,
    None where a product of vectors has none. ``depth`` is how many axes A and B have for K.
    With ``parts`` the result is not stored: its memory has what that op gives of each row and block
    of columns (:mod:`cklang.ir.log_sums`), in rows.

    ``anchor`` is the gemm of the function that this kernel computes (by the name of its result),
    ``op`` its op,
    ``transposed`` whether the kernel computes its transpose, with A and B exchanged.
    ``spans`` are the user's places in it: the anchor's, then the region's, each once.
    """

    name: str
    a: View | Computed
    b: View | Computed
    epilogue: Function
    reads: tuple[Read, ...]
    result: Value
    more: tuple[Read, ...] = ()
    parts: str = ""
    b2: View | None = None
    anchor: str
    op: str = "gemm"
    axes: tuple[int | None, ...] = (0, 1)
    depth: int = 1
    transposed: bool = False
    scale_a: BlockScale | None = None
    scale_b: BlockScale | None = None
    spans: tuple[Span, ...] = field(default=(), compare=False)

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values it reads, each once, in the order a, b, b2, their scales, reads."""
        values: list[Value] = []
        for side in (self.a, self.b, *([] if self.b2 is None else [self.b2])):
            values += (read.value for read in side.reads)
        values += (scale.view.value for scale in (self.scale_a, self.scale_b) if scale)
        return tuple(dict.fromkeys([*values, *(read.value for read in self.reads)]))

    family: ClassVar[str] = "gemm"

    @property
    def results(self) -> tuple[Value, ...]:
        """The values that it writes."""
        return (self.result, *(each.value for each in self.more))

    @property
    def log_sums(self) -> bool:
        """Whether log-sum-exps are stored in the place of the result."""
        return self.parts == LOG_SUMS

    def renamed(self, name: str) -> FusedGemm:
        """Return the same kernel with another name."""
        return replace(self, name=name)

    @property
    def functions(self) -> Functions:
        """The function of ``epilogue``, and those of ``a`` and ``b`` if they are computed."""
        sides = {"prologue_a": self.a, "prologue_b": self.b}
        computed = {name: side for name, side in sides.items() if isinstance(side, Computed)}
        sums = 1 if self.b2 is None else 2
        counts = [sums + len(self.reads), *(len(side.reads) for side in computed.values())]
        parts = split(self.epilogue, counts, first=len(self.results))
        return Functions(**dict(zip(("epilogue", *computed), parts, strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedConv:
    """One kernel: ``result = cast(epilogue(operation(a, b), reads…))`` of a convolution op.

    The fields are those of :class:`FusedGemm`, but that ``perm`` of ``a`` and ``b`` and ``axes``
    of the reads are in the order of the axes of ``operation``'s operands and result, channels
    last; ``operation`` has the windows and the extents.
    """

    name: str
    operation: Operation
    a: View
    b: View
    epilogue: Function
    reads: tuple[Read, ...]
    result: Value
    axes: tuple[int, ...]
    spans: tuple[Span, ...] = field(default=(), compare=False)

    @property
    def anchor(self) -> str:
        """The name of the result of ``operation``."""
        return self.operation.result.name

    family: ClassVar[str] = "conv"

    @property
    def results(self) -> tuple[Value, ...]:
        """The values that it writes."""
        return (self.result,)

    def renamed(self, name: str) -> FusedConv:
        """Return the same kernel with another name."""
        return replace(self, name=name)

    @property
    def functions(self) -> Functions:
        """Its one function."""
        return Functions(epilogue=self.epilogue)

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values it reads, each once, in the order a, b, reads."""
        values = (self.a.value, self.b.value, *(read.value for read in self.reads))
        return tuple(dict.fromkeys(values))


Kernel: TypeAlias = FusedGemm | FusedConv
"""What fusion makes of a product and what follows it."""


class AnyKernel(Protocol):
    """A kernel of any family, as fusion made it."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def family(self) -> str:
        """The family that computes it."""

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values that it reads, each once."""

    @property
    def results(self) -> tuple[Value, ...]:
        """The values that it writes."""

    @property
    def functions(self) -> Functions:
        """The user's functions that it calls."""

    @property
    def spans(self) -> tuple[Span, ...]:
        """The user's places in it."""

    def renamed(self, name: str) -> AnyKernel:
        """Return the same kernel with another name."""


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
            ((each.edge.source, each.edge.target, each.edge.operand), each.fused, each.reason)
            for each in self.decisions
        ]
        return to_svg(self.function.name, self.graph, uses)


def epilogue_text(epilogue: Function) -> str:
    """Return the canonical text of a region that fusion made: no spans, one spelling."""
    return print_function(epilogue)


def epilogue_hash(epilogue: Function) -> str:
    """Return the SHA-256 (hex) of a region's canonical text: its identity in keys."""
    return hashlib.sha256(epilogue_text(epilogue).encode()).hexdigest()
