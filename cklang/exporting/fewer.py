# SPDX-License-Identifier: MIT
"""Few kernels for calls with free extents: those that lose least by the cost model."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cklang.arch import ArchSpec
from cklang.errors import CkError
from cklang.exporting.variants import planned_call
from cklang.fusion.functions import Functions
from cklang.keys import AnyKey
from cklang.runtime.op import Op
from cklang.runtime.planner import selecting_of
from cklang.selection.registry import Registry
from cklang.selection.request import Request
from cklang.selection.select import AnySelection

_ILLEGAL = 1e3
"""How much longer a call counts that none of the kernels serves."""


def with_fewer_kernels(
    op: Op,
    calls: Sequence[Mapping[str, int]],
    others: Mapping[str, Any],
    spec: ArchSpec,
    kernels: Sequence[tuple[AnyKey, Functions]],
    most: int,
) -> Op:
    """Return an op that chooses among so many kernels, which are declared in a registry of its own.

    One after the other is taken that shortens the calls most, each beside the best kernel of all.

    It is judged at the extents ``calls``, with the dtypes and constants ``others``. Kernels of
    families without a choice do not count.
    """
    selections: list[AnySelection] = []
    for dims in calls:
        try:
            planned_call(op, dims, others, spec, selecting=_noting(selections))
        except CkError:
            continue
    keys = [key for key, _ in kernels]
    losses = np.array([_losses(selection, keys) for selection in selections])
    taken: list[int] = []
    least = np.full(len(selections), _ILLEGAL)
    while len(taken) < min(most, len(keys)):
        gains = [float(np.minimum(least, losses[:, place]).sum()) for place in range(len(keys))]
        best = int(np.argmin(gains))
        if best in taken:
            break
        taken.append(best)
        least = np.minimum(least, losses[:, best])
    registry = Registry(f"the exported kernels of {op.program.name}")
    for place in taken:
        registry.add(*kernels[place])
    return op.using(registry=registry)


def _noting(selections: list[AnySelection]) -> Any:
    """Return what selects kernels as always and notes each selection."""

    def selecting(spec: ArchSpec, request: Request) -> Any:
        select = selecting_of(spec, request)

        def own(
            problem: Any, functions: Functions, adapt: Callable[[Any], Any] | None = None
        ) -> AnySelection:
            selections.append(select(problem, functions, adapt))
            return selections[-1]

        return own

    return selecting


def _losses(selection: AnySelection, keys: Sequence[AnyKey]) -> list[float]:
    """Return for each kernel how many times as long it takes as the best one."""
    pool, problem = selection.pool, selection.problem
    places = {key: place for place, key in enumerate(pool.keys)}
    legal = pool.legal(problem)
    try:
        times = [float(time) for time in pool.times_of(problem)]
    except CkError:
        times = [1.0 if key == selection.key else math.inf for key in pool.keys]
    best = times[selection.position]
    return [
        min(times[places[key]] / best, _ILLEGAL)
        if key in places and legal[places[key]]
        else _ILLEGAL
        for key in keys
    ]
