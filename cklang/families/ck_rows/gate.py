# SPDX-License-Identifier: MIT
"""The gate of a layer of experts: a softmax and its greatest elements, as one kernel of CK Tile's.

In the partition these are a kernel of rows and one that puts lines in order. Where an op names a
``CkTileRows``, both are one kernel, if nothing else reads the softmax.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import ClassVar

from cklang.families.ck_rows.key import CkTileRowsSignature, UpstreamKernel
from cklang.families.ck_rows.problem import CkTileRowsProblem
from cklang.families.ck_rows.recognise import is_softmax
from cklang.families.rowwise.family import ROWWISE
from cklang.families.rowwise.fuse import FusedRows
from cklang.families.rowwise.problem import RowwiseTensor
from cklang.families.sort.fuse import FusedSort
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.passes import Draft
from cklang.fusion.plan import AnyKernel, FusedKernel, Plan, numbered
from cklang.ir.nodes import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedGate(FusedKernel):
    """One kernel: the greatest elements of the softmax of each row, and their indices."""

    rows: FusedRows
    sort: FusedSort

    family: ClassVar[str] = "ck_rows"

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The value that it reads."""
        return self.rows.inputs

    @property
    def results(self) -> tuple[Value, ...]:
        """The values that it writes."""
        return self.sort.results

    @property
    def anchors(self) -> tuple[str, ...]:
        """The names of what both kernels compute without a function."""
        return (*self.rows.anchors, *self.sort.anchors)

    def lines(self) -> Iterator[str]:
        """Yield what it computes as lines of text."""
        yield from self.rows.lines()
        yield from self.sort.lines()


class NamedRows(FusedRows):
    """A kernel of rows that somebody asks CK Tile for."""

    family: ClassVar[str] = "ck_rows"


def as_named(draft: Draft) -> Draft:
    """Return a draft whose kernels of rows are CK Tile's, a softmax and its order one kernel."""
    plan = draft.plan
    if plan is None:
        return draft
    kernels = tuple(
        NamedRows(**{part.name: getattr(kernel, part.name) for part in fields(kernel)})
        if isinstance(kernel, FusedRows)
        else kernel
        for kernel in _with_gates(plan).kernels
    )
    return replace(draft, plan=replace(plan, kernels=kernels))


def _with_gates(plan: Plan) -> Plan:
    """Return a plan in which a softmax and what puts it in order are one kernel."""
    kernels = list(plan.kernels)
    stored = {value.name for value in plan.function.results}
    for rows in plan.kernels:
        readers = [kernel for kernel in plan.kernels if set(rows.results) & set(kernel.inputs)]
        is_stored = any(value.name in stored for value in rows.results)
        if isinstance(rows, FusedRows) and len(readers) == 1 and not is_stored:
            (sort,) = readers
            if isinstance(sort, FusedSort) and _is_gate(rows, sort):
                kernels.remove(rows)
                spans = (*rows.spans, *sort.spans)
                gate: AnyKernel = FusedGate(name=sort.name, spans=spans, rows=rows, sort=sort)
                kernels[kernels.index(sort)] = gate
    return replace(plan, kernels=numbered(plan.function.name, kernels))


def _is_gate(rows: FusedRows, sort: FusedSort) -> bool:
    """Tell whether rows are a softmax whose greatest elements and their indices are taken."""
    is_plain = sort.source.axes == (0, 1) and sort.axis == 1
    both = sort.values is not None and sort.indices is not None
    return is_softmax(rows.body) and is_plain and both and sort.descending and sort.count > 0


def gate_problem(
    kernel: FusedGate, layouts: Mapping[str, TensorLayout], dims: Mapping[str, int]
) -> CkTileRowsProblem | None:
    """Return the problem of a gate; None if its result has no element."""
    softmax = ROWWISE.problem(kernel.rows, layouts, dims)
    if softmax is None:
        return None
    x = softmax.reads[0]
    results = tuple(
        RowwiseTensor(
            value=value.name,
            dtype=value.type.dtype,
            rows=layouts[value.name].strides[:1],
            elements=layouts[value.name].strides[1:],
        )
        for value in kernel.results
    )
    signature = CkTileRowsSignature(
        kernel=UpstreamKernel.TOPK_SOFTMAX,
        dtype=x.dtype,
        result=results[0].dtype,
        experts=1 << max(softmax.length - 1, 0).bit_length(),
    )
    return CkTileRowsProblem(
        signature=signature,
        rows=softmax.rows,
        elements=softmax.elements,
        operands=(x,),
        results=results,
        epsilon=0.0,
        wanted=kernel.sort.count,
    )
