# SPDX-License-Identifier: MIT
"""The functions of a kernel of rows: between its reductions it calls what the user wrote.

A kernel runs over a row once for each *stage*, a level of reductions: those of the first need
elements alone, those of the next the results of the first, and so on; then it stores. What several
of these passes need of an element is *kept* in registers, or computed again from memory where rows
are too long for that. The functions are regions of rank-0 values:

==============  ==============================================  =================================
hole            parameters                                      results
==============  ==============================================  =================================
``common``      reads                                           what all rows have in common
``load``        common values, reads                            what is kept of an element
``part0``...    kept values, results of earlier stages, reads   what each reduction of the stage
                                                                takes of an element
``store``       the same, of all stages                         an element of each output
``finish``      results of all stages, reads                    each output that rows have one of
==============  ==============================================  =================================

Kept values are called ``k0``..., followed by the common ones, results of reductions ``r0``... in
the order of the stages, reads ``d0``..., and ``n`` is the length of a row as f32.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from cklang.families.rowwise.key import Reduction, parts_of
from cklang.families.rowwise.space import RowSpace, is_reduction, operands_of, slice_of
from cklang.fusion.flow import Flow, Occurrence
from cklang.fusion.functions import Functions
from cklang.fusion.plan import Read
from cklang.fusion.sites import ints
from cklang.ir.builder import Builder
from cklang.ir.nodes import Function, Value
from cklang.ir.ops import Kind
from cklang.types import Dim, TensorType, f32, i32

_OF_OP = {
    "reduce_sum": Reduction.SUM,
    "reduce_mean": Reduction.SUM,
    "reduce_max": Reduction.MAX,
    "reduce_min": Reduction.MIN,
    "reduce_prod": Reduction.PROD,
}
"""How the parts of a row are joined."""

_NUMBERS = (Kind.CONSTANT, Kind.INDEX)
"""What no register keeps from pass to pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """A computation over rows, cut at its reductions."""

    functions: Functions
    reductions: tuple[tuple[Reduction, ...], ...]
    """The reductions of each stage."""
    reduced: tuple[str, ...]
    """Their names in the program, once each."""
    integers: tuple[int, ...]
    """The reductions of i32, by their number through all stages."""
    kept: int
    """Words of values of an element that more than one pass needs."""
    common: int
    """Words of values of an element that are the same in every row."""
    reads: tuple[Read, ...]
    """What is read, of memory or as an index; the axes are those of the space."""
    gathered: tuple[int | None, ...] = ()
    """For each of them: the axis of the value along which it is read at computed indices."""


def stages_of(flow: Flow, space: RowSpace, outputs: Sequence[Occurrence]) -> Stages:
    """Return the stages of a kernel.

    The parameters of what the kernel computes are in memory. ``outputs`` are seen from the space.
    """
    return _Cutter(flow, space, outputs).run()


class _Cutter:
    """Cuts what outputs are computed from at its reductions."""

    def __init__(self, flow: Flow, space: RowSpace, outputs: Sequence[Occurrence]) -> None:
        self.flow = flow
        self.space = space
        self.outputs = outputs
        order: dict[Occurrence, None] = {}
        for output in outputs:
            order |= dict.fromkeys(slice_of(flow, output, space, self.is_read))
        self.order = tuple(order)
        """Operands before their users."""
        self.tables: dict[Occurrence, tuple[Occurrence, int | None]] = {}
        """What is read at indices: the tensor, and its axis."""
        self.operands = {use: self._operands(use) for use in order}
        self.levels: dict[Occurrence, int] = {}
        """After how many stages each value is known."""
        for use in order:
            below = max((self.levels[operand] for operand in self.operands[use]), default=0)
            self.levels[use] = below + self.is_reduction(use)
        reductions = [use for use in order if self.is_reduction(use)]
        self.reductions = sorted(reductions, key=self.levels.__getitem__)
        self.reads: dict[tuple[Occurrence, int | None], int] = {}
        """What is read and the axis along which it is read at indices, with its number."""
        self._length: Value | None = None
        """The length of a row in the region that is written."""

    def _operands(self, use: Occurrence) -> tuple[Occurrence, ...]:
        """Return what a value is computed of element by element."""
        if self.is_read(use):
            return ()
        operands = operands_of(self.flow, use, self.space)
        if self.flow.kind(use.node) is not Kind.GATHER:
            return operands
        table, index = operands
        self.tables[use] = table, ints(self.flow.expect_operation(use.node), "axis")[0]
        return (index,)

    def is_read(self, use: Occurrence) -> bool:
        """Tell whether a value is read: from memory, or as the index of an element."""
        return self.flow.kind(use.node) in (None, Kind.INDEX)

    def is_reduction(self, use: Occurrence) -> bool:
        """Tell whether a value is that of a reduction."""
        return is_reduction(self.flow.operation(use.node))

    def run(self) -> Stages:
        """Return the stages."""
        stages = self._stages()
        parts = [[self.operands[use][0] for use in stage] for stage in stages]
        elements = [use for use in self.outputs if self.space.varies(use.axes)]
        common, kept = self._common([*parts, elements]), self._kept([*parts, elements])
        functions = self._functions(parts, common, kept, elements)
        values = [self.flow.value(use.node) for use in self.reductions]
        return Stages(
            functions=Functions(**dict(sorted(functions.items()))),
            reductions=tuple(tuple(map(self._reduction, stage)) for stage in stages),
            reduced=tuple(dict.fromkeys(value.name for value in values)),
            integers=tuple(n for n, value in enumerate(values) if value.type.dtype == i32),
            kept=self._words(kept),
            common=self._words(common),
            reads=tuple(
                Read(value=self.flow.value(use.node), axes=use.axes) for use, _ in self.reads
            ),
            gathered=tuple(axis for _, axis in self.reads),
        )

    def _stages(self) -> list[list[Occurrence]]:
        """Return the reductions of each stage."""
        count = max((self.levels[use] for use in self.reductions), default=0)
        return [
            [use for use in self.reductions if self.levels[use] == level + 1]
            for level in range(count)
        ]

    def _functions(
        self,
        parts: Sequence[Sequence[Occurrence]],
        common: Sequence[Occurrence],
        kept: Sequence[Occurrence],
        elements: Sequence[Occurrence],
    ) -> dict[str, Function]:
        """Return the functions of the holes; what is read is numbered in this order."""
        shared = (*kept, *common)
        known = {use: self._words(shared[:place]) for place, use in enumerate(shared)}
        rows = [use for use in self.outputs if use not in elements]
        regions = (
            *((f"part{level}", targets, known, level) for level, targets in enumerate(parts)),
            ("common", common, {}, 0),
            ("load", kept, {use: known[use] for use in common}, 0),
            ("store", elements, known, len(parts)),
            ("finish", rows, {}, len(parts)),
        )
        return {
            name: self._region(name, targets, inputs, level)
            for name, targets, inputs, level in regions
            if targets
        }

    def _words(self, uses: Sequence[Occurrence]) -> int:
        """Return how many words values take."""
        return sum(len(parts_of(self.flow.value(use.node).type.dtype)) for use in uses)

    def _is_common(self, use: Occurrence) -> bool:
        """Tell whether a value is read that every row has, but not every element of a row."""
        space = self.space
        runs = bool(space.row) and space.varies(use.axes)
        same = all(use.axes[axis] is None for axis in space.lead)
        return runs and same and bool(space.lead) and self.flow.operation(use.node) is None

    def _reduction(self, use: Occurrence) -> Reduction:
        return _OF_OP[self.flow.expect_operation(use.node).op]

    def _common(self, passes: Sequence[Sequence[Occurrence]]) -> tuple[Occurrence, ...]:
        needed = set().union(*(self._needed(targets, ()) for targets in passes))
        return tuple(use for use in self.order if use in needed and self._is_common(use))

    def _can_be_kept(self, use: Occurrence) -> bool:
        of_element = not self.levels[use] and self.space.varies(use.axes)
        is_number = self.flow.kind(use.node) in _NUMBERS
        return of_element and not is_number and not self._is_common(use)

    def _kept(self, passes: Sequence[Sequence[Occurrence]]) -> tuple[Occurrence, ...]:
        """Return what is kept of an element: what is read, or what is made of it, if that is less.

        It is what two passes need and depends on no reduction.
        """
        counts = Counter(chain(*(self._needed(targets, ()) for targets in passes)))
        shared = {use for use, count in counts.items() if count > 1 and self._can_be_kept(use)}
        ordered = [use for use in self.order if use in shared]
        wanted = set(chain(*passes, *(self.operands[use] for use in counts if use not in shared)))
        computed = [use for use in ordered if use in wanted]
        # Converting what is kept is cheaper than keeping it twice.
        computed = [use for use in computed if not self._converts(use, computed)]
        read = [use for use in ordered if self.is_read(use)]
        return tuple(computed if len(computed) <= len(read) else read)

    def _converts(self, use: Occurrence, kept: Collection[Occurrence]) -> bool:
        """Tell whether a value is a conversion of one that is kept."""
        return self.flow.kind(use.node) is Kind.CAST and self.operands[use][0] in kept

    def _needed(
        self, targets: Sequence[Occurrence], known: Collection[Occurrence]
    ) -> set[Occurrence]:
        """Return what ``targets`` are computed from, down to what is known and to reductions."""
        needed = set(targets)
        pending = list(targets)
        while pending:
            use = pending.pop()
            if use not in known and not self.is_reduction(use):
                operands = [operand for operand in self.operands[use] if operand not in needed]
                needed.update(operands)
                pending += operands
        return needed

    def _region(
        self, name: str, targets: Sequence[Occurrence], known: Mapping[Occurrence, int], level: int
    ) -> Function:
        """Return the region that computes ``targets``, after ``level`` stages.

        ``known`` are the values in registers, with their places there.
        """
        builder = Builder(name)
        self._length = None
        needed = self._needed(targets, known)
        values: dict[Occurrence, Value] = {}
        for use in self.order:
            if use not in needed:
                continue
            if use in known:
                values[use] = self._param(builder, f"k{known[use]}", use)
            elif self.is_reduction(use):
                values[use] = self._reduced(builder, use)
            elif self.is_read(use):
                number = self.reads.setdefault((use, None), len(self.reads))
                values[use] = self._param(builder, f"d{number}", use)
            elif use in self.tables:
                (index,) = self.operands[use]
                element = (self._table(builder, use), values[index])
                origins = (self.flow.value(use.node).name,)
                values[use] = builder.apply("element", element, {}, origins=origins)
            elif self.flow.kind(use.node) is Kind.SHAPE:
                values[use] = values[self.operands[use][0]]
            else:
                operation = self.flow.expect_operation(use.node)
                operands = [values[operand] for operand in self.operands[use]]
                values[use] = builder.apply(
                    operation.op,
                    operands,
                    dict(operation.attrs),
                    span=operation.span,
                    origins=(operation.result.name,),
                )
        return builder.finish(*(values[target] for target in targets))

    def _param(self, builder: Builder, name: str, use: Occurrence) -> Value:
        return builder.param(name, TensorType(dtype=self.flow.value(use.node).type.dtype))

    def _table(self, builder: Builder, use: Occurrence) -> Value:
        """Return what a value is an element of, as a parameter with the one axis of the index."""
        table = self.tables[use]
        name = f"d{self.reads.setdefault(table, len(self.reads))}"
        known = next((value for value in builder.values if value.name == name), None)
        type_ = TensorType(dtype=self.flow.value(use.node).type.dtype, shape=(Dim("rows"),))
        return known or builder.param(name, type_)

    def _reduced(self, builder: Builder, use: Occurrence) -> Value:
        """Return the result of a reduction, made of what the kernel has joined."""
        result = self._param(builder, f"r{self.reductions.index(use)}", use)
        if self.flow.expect_operation(use.node).op != "reduce_mean":
            return result
        if self._length is None:
            self._length = builder.param("n", TensorType(dtype=f32))
        return builder.append("div", result, self._length)
