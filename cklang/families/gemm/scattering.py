# SPDX-License-Identifier: MIT
"""Products whose rows are stored at indices: which kernels join, and what happens where none can.

``ck.scatter_add(y, ids, (h @ w) * by[:, None], ordered=False)`` is a product and rows that are
added at indices. Its epilogue adds them itself where the order of sums is free: workgroups end in
no order. Where no kernel does that, the product stores its rows and the family ``scatter`` has the
rest.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from cklang.errors import CkUnsupportedError
from cklang.families.gemm.gathering import NO_KERNEL, unnamed
from cklang.families.gemm.memory_order import collapsible_order
from cklang.families.gemm.plan import FusedGemm
from cklang.families.gemm.summed_axes import step_along
from cklang.families.protocol import Launches, Planning, Sel
from cklang.families.scatter.family import SCATTER, filled
from cklang.families.scatter.fuse import FusedScatter
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.kernel import decision_of
from cklang.fusion.plan import AnyKernel, Decision, Plan, numbered
from cklang.types import f32

Planned: TypeAlias = Callable[[FusedGemm, Planning[Sel]], Iterator[Launches[Sel]]]


def with_scatters(plan: Plan) -> Plan:
    """Return a plan in which products store rows at indices that a kernel behind them stored."""
    readers: dict[str, list[AnyKernel]] = {}
    for kernel in plan.kernels:
        for value in kernel.inputs:
            readers.setdefault(value.name, []).append(kernel)
    needed = {value.name for value in plan.function.results}
    joined: dict[str, FusedGemm] = {}
    products: set[str] = set()
    for kernel in plan.kernels:
        if not isinstance(kernel, FusedGemm) or kernel.result.name in needed:
            continue
        (*others, last) = readers.get(kernel.result.name, [kernel])
        if not others and isinstance(last, FusedScatter) and _may_join(kernel, last):
            joined[last.name] = replace(kernel, scatter=last)
            products.add(kernel.name)
    if not joined:
        return plan
    kernels = [
        joined.get(kernel.name, kernel) for kernel in plan.kernels if kernel.name not in products
    ]
    rows = {kernel.result.name for kernel in joined.values()}
    return replace(
        plan,
        kernels=numbered(plan.function.name, kernels),
        decisions=tuple(_decided(plan, decision, rows) for decision in plan.decisions),
    )


def _may_join(kernel: FusedGemm, scatter: FusedScatter) -> bool:
    """Tell whether a product may store rows as a kernel behind it does.

    Its rows are those that go to indices, and its columns are of the tensor.
    """
    rows = kernel.result
    others = (kernel.more, kernel.parts, kernel.group, kernel.b2, kernel.has_segments_of_k)
    is_plain = not any(others)
    is_same = scatter.rows.value == rows and scatter.rows.axes == tuple(range(rows.type.rank))
    stored = scatter.result.type.dtype
    is_stored = stored == rows.type.dtype and (stored == f32 or not scatter.adds)
    if not (is_plain and is_same and is_stored and not scatter.in_order):
        return False
    row, column = kernel.axes[-2:]
    places = range(scatter.axis, scatter.axis + scatter.places.rank)
    return row in places and column is not None and column not in places


def _decided(plan: Plan, decision: Decision, rows: set[str]) -> Decision:
    """Return a decision, or what joining makes of one about rows that are stored at indices."""
    source = plan.graph.nodes[decision.edge.source]["node"].value
    if source.name not in rows or decision.rule != "materialise":
        return decision
    return decision_of("scattered", decision.edge, value=source)


def scatter_obstacle(scatter: FusedScatter, layouts: Mapping[str, TensorLayout]) -> str | None:
    """Return why no product stores rows as a kernel behind it would; None if one may."""
    result = layouts[scatter.result.name]
    last = len(result.shape) - 1
    if scatter.axis == last or (result.shape[last] > 1 and step_along(result, last) != 1):
        return f"rows of {scatter.result} are not contiguous"
    if step_along(result, scatter.axis) < result.shape[last] and result.shape[scatter.axis] > 1:
        return f"rows of {scatter.result} overlap"
    return None


def scattered_launches(
    kernel: FusedGemm, scatter: FusedScatter, planning: Planning[Sel], planned: Planned[Sel]
) -> Iterator[Launches[Sel]]:
    """Yield the launches of a product that stores its rows at indices."""
    reason = scatter_obstacle(scatter, planning.layouts)
    if reason is None:
        try:
            product = list(planned(kernel, planning))
        except CkUnsupportedError as refusal:
            if refusal.code not in NO_KERNEL:
                raise
            reason = f"no kernel serves it ({refusal.code})"
    if reason is not None:
        yield from _apart(kernel, scatter, planning, planned, reason)
        return
    others = replace(planning, select=unnamed(planning.select))
    before = () if scatter.in_place else filled(scatter, others)
    if not product:
        yield from before
        return
    stages = tuple(stage for launch in before for stage in launch.stages)
    note = f"scatter    stores the rows of {kernel.result} at {scatter.indices.value}"
    for place, step in enumerate(product):
        own = replace(step, before=(*stages, *step.before)) if place == 0 else step
        yield _noted(own, note) if place == 0 else own


def _apart(
    kernel: FusedGemm,
    scatter: FusedScatter,
    planning: Planning[Sel],
    planned: Planned[Sel],
    reason: str,
) -> Iterator[Launches[Sel]]:
    """Yield the launches of a product that stores its rows, then of what stores them at indices."""
    rows = kernel.result
    product = replace(kernel, scatter=None)
    layout = TensorLayout.packed(rows, planning.dims, collapsible_order(product))
    own = replace(planning, layouts={**planning.layouts, rows.name: layout})
    size = {rows.name: rows.type.bytes(planning.dims)}
    note = f"scatter    a kernel after the product stores its rows: {reason}"
    others = replace(own, select=unnamed(planning.select))
    for band, launch in enumerate((*planned(product, own), *SCATTER.plan(scatter, others))):
        main = replace(launch.main, temporaries={**size, **launch.main.temporaries})
        yield _noted(replace(launch, main=main, band=band), note if band == 0 else "")


def _noted(launches: Launches[Sel], note: str) -> Launches[Sel]:
    return replace(launches, note="\n  ".join(filter(None, (note, launches.note))))
