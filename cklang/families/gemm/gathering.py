# SPDX-License-Identifier: MIT
"""Products whose rows of A are read at indices: where no kernel does that, a copy of the rows.

A kernel of rows makes the copy, and the product reads it. Where a kernel could do either, the
predicted times decide.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from cklang.device.arrays import HOST, Array
from cklang.errors import CkUnsupportedError
from cklang.families import FAMILIES, plan_of
from cklang.families.gemm.plan import FusedGemm
from cklang.families.gemm.summed_axes import step_along
from cklang.families.index_arrays import HostIndices
from cklang.families.memory_cost import memory_time
from cklang.families.protocol import Launches, Planning, Sel
from cklang.families.stage import Stage
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.functions import Functions
from cklang.fusion.plan import Gathered
from cklang.ir.indices import TAKE
from cklang.ir.nodes import Function, Operation, make_attrs
from cklang.widths import DWORD_BYTES

GAIN = 0.95
"""Part of the time of loads through indices that a copy may take with its product: models err."""

NO_KERNEL = frozenset({"K101", "K102"})
"""Errors that say that no kernel serves a problem."""

Planned: TypeAlias = Callable[[FusedGemm, Planning[Sel]], Iterator[Launches[Sel]]]


def gathered_of(kernel: FusedGemm) -> Gathered | None:
    """Return the operand of a product that is read at indices; None if there is none."""
    return next(
        (operand for operand in (kernel.a, kernel.b) if isinstance(operand, Gathered)), None
    )


def obstacle(kernel: FusedGemm, layouts: Mapping[str, TensorLayout]) -> str | None:
    """Return why no kernel reads the rows of a product at indices; None if one may."""
    side = kernel.a
    if not isinstance(side, Gathered):
        return "the kernel computes the transpose, where they are columns"
    table, k = layouts[side.value.name], side.perm[-1]
    if table.prepared is not None:
        return f"{side.value} is prepared"
    if k is not None and table.shape[k] > 1 and step_along(table, k) != 1:
        return f"rows of {side.value} are not contiguous"
    return None


def rows_stored(kernel: FusedGemm) -> FusedGemm:
    """Return the product that reads the rows where a kernel before it has stored them."""
    a, b = (
        operand.copy if isinstance(operand, Gathered) else operand
        for operand in (kernel.a, kernel.b)
    )
    return replace(kernel, a=a, b=b)


def gathered_launches(
    kernel: FusedGemm, side: Gathered, planning: Planning[Sel], planned: Planned[Sel]
) -> Iterator[Launches[Sel]]:
    """Yield the launches of a product that reads rows at indices, or a copy of them."""
    loads, reason = _loads(kernel, planning, planned)
    time = None if reason else _time(loads)
    if not reason and (time is None or _is_wide(planning.layouts[side.value.name], side)):
        # A product reads a copy no faster than such a table.
        yield from _noted(loads, side, _words(time, _copy_time(side, planning), "more with a copy"))
        return
    before, own = _stored(side, planning)
    product = list(planned(rows_stored(kernel), own))
    if time is not None:
        other = _copy_time(side, planning) + (_time(product) or time)
        if other >= GAIN * time:
            yield from _noted(loads, side, _words(time, other, "with a copy"))
            return
        reason = _words(other, time, "without: accesses of the table are narrow")
    for place, launch in enumerate(_noted(product, side, reason, verb="copies")):
        yield replace(launch, before=(*before, *launch.before)) if place == 0 else launch


def _loads(
    kernel: FusedGemm, planning: Planning[Sel], planned: Planned[Sel]
) -> tuple[Sequence[Launches[Sel]], str]:
    """Return the launches that read at indices, or none and why there is none."""
    reason = obstacle(kernel, planning.layouts)
    if reason is not None:
        return (), reason
    try:
        return list(planned(kernel, planning)), ""
    except CkUnsupportedError as refusal:
        if refusal.code not in NO_KERNEL:
            raise
        return (), f"no kernel serves it ({refusal.code})"


def _is_wide(table: TensorLayout, side: Gathered) -> bool:
    """Tell whether the widest accesses that a packed copy has fit the rows of the table, too."""
    step = step_along(table, side.axis) * table.dtype.bytes
    return table.alignment >= DWORD_BYTES and step % DWORD_BYTES == 0


def _time(launches: Sequence[Launches[Sel]]) -> float | None:
    """Return the predicted time of launches in µs; None if one has none."""
    times = [launch.selection.predicted for launch in launches]
    known = [time for time in times if time is not None]
    return sum(known) if len(known) == len(times) else None


def _copy_time(side: Gathered, planning: Planning[Sel]) -> float:
    """Return the predicted time of a copy of the rows, read and written once."""
    return memory_time(2 * side.copy.value.type.bytes(planning.dims), planning.spec)


def _words(time: float | None, other: float, what: str) -> str:
    return "" if time is None else f"{time:.1f} µs predicted, {other:.1f} {what}"


def _noted(
    launches: Sequence[Launches[Sel]], side: Gathered, reason: str, verb: str = "loads"
) -> Iterator[Launches[Sel]]:
    """Yield launches; the first says how the rows are read, and why."""
    what = f"gather     {verb} the rows of {side.value} at {side.indices.value}"
    for place, launch in enumerate(launches):
        own = ": ".join(filter(None, (what, reason))) if place == 0 else ""
        yield replace(launch, note="\n  ".join(filter(None, (own, launch.note))))


def _stored(side: Gathered, planning: Planning[Sel]) -> tuple[tuple[Stage, ...], Planning[Sel]]:
    """Return the launches that copy the rows, and the planning of what reads the copy."""
    copy = side.copy.value
    layout = TensorLayout.packed(copy, planning.dims)
    own = replace(planning, layouts={**planning.layouts, copy.name: layout})
    size = {copy.name: copy.type.bytes(planning.dims)}
    stages = (stage for copy in _copies(side, own) for stage in copy.stages)
    return tuple(replace(stage, temporaries={**stage.temporaries, **size}) for stage in stages), own


def _copies(side: Gathered, planning: Planning[Sel]) -> Iterator[Launches[Sel]]:
    """Yield the launches that read a table at indices."""
    operands = (side.value, side.indices.value)
    take = Operation(
        op=TAKE, operands=operands, attrs=make_attrs(axis=side.axis), result=side.copy.value
    )
    name = f"rows_of_{side.value.name}"
    function = Function(name=name, params=operands, body=(take,), results=(side.copy.value,))
    own = replace(planning, select=unnamed(planning.select))
    for kernel in plan_of(function).kernels:
        yield from FAMILIES[kernel.family].plan(kernel, own)


def unnamed(select: Any) -> Any:
    """Return what selects kernels of rows: an algorithm that somebody named is for products."""

    def own(problem: Any, functions: Functions, _adapt: Callable[[Any], Any] | None = None) -> Any:
        return select(problem, functions, lambda _: None)

    return own


def host_indices_of(
    kernel: FusedGemm, arrays: Mapping[str, Array], dims: Mapping[str, int], place: str
) -> HostIndices | None:
    """Return the indices of a product's rows, if they are an argument in host memory."""
    side = gathered_of(kernel)
    if side is None or place != HOST or side.indices.value.name not in arrays:
        return None
    extent = side.value.type.extents(dims)[side.axis]
    return HostIndices.of(side.indices.value.name, arrays, extent)
