# SPDX-License-Identifier: MIT
"""The totals of the cost model for one problem, arranged for speed.

The equations are those of :mod:`cklang.families.gemm.cost.terms` (a test compares the two); here
everything that depends on the kernels alone is computed once, and equal factors are merged, so that
a problem costs some forty small array operations.
"""

from dataclasses import fields, replace
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from cklang.arch import ArchSpec
from cklang.families.cost_constants import Constants
from cklang.families.gemm.cost.terms import (
    Costs,
    geometry,
    loop_steps,
    step_time,
    times,
)
from cklang.families.gemm.cost.traits import Columns, Floats
from cklang.families.gpu_rates import cache_bytes

WHOLE = (1.0, 1.0)
"""No element of A or B is there twice."""

Extent = float | Floats
"""A length of a problem: one for all kernels, or one for each."""

_MEGA = 1e-6


class Lengths(NamedTuple):
    """The extents of a problem, and the part of A and of B that is no repetition of elements."""

    m: Extent
    n: Extent
    k: Extent
    products: Extent = 1.0
    unique_fraction: tuple[float, float] = WHOLE


class Equations:
    """The equations as they stand, for kernels that :class:`Totals` does not know: stream-K."""

    def __init__(self, t: Columns, spec: ArchSpec, cost: Costs, c: Constants) -> None:
        self._t, self._spec, self._cost, self._c = t, spec, cost, c
        self._full = step_time(cost, t.occupancy)

    def __call__(self, x: Lengths) -> Floats:
        """Return the predicted time of each kernel in µs, shape [kernels]."""
        m, n, k, products = (1.0 * extent for extent in x[:4])
        g = geometry(self._t, self._spec, m, n, k, products, x.unique_fraction)
        last = step_time(self._cost, g.last)
        kernel_us: Floats = times(self._t, g, self._cost, self._c, self._full, last).total
        return kernel_us


class Mixed:
    """Both, each for its kernels."""

    def __init__(self, t: Columns, spec: ArchSpec, cost: Costs, c: Constants) -> None:
        self._count = len(t.tile_m)
        streams = t.stream > 0
        self._parts: list[tuple[npt.NDArray[np.intp], Totals | Equations]] = []
        for kind, places in ((Totals, ~streams), (Equations, streams)):
            if places.any():
                predictor = kind(_taken(t, places), spec, _taken(cost, places), c)
                self._parts.append((np.flatnonzero(places), predictor))

    def __call__(self, x: Lengths) -> Floats:
        """Return the predicted time of each kernel in µs, shape [kernels]."""
        if len(self._parts) == 1:
            return self._parts[0][1](x)
        kernel_us = np.empty(self._count)
        for places, part in self._parts:
            own = (each[places] if isinstance(each, np.ndarray) else each for each in x[:4])
            kernel_us[places] = part(Lengths._make((*own, x.unique_fraction)))
        return kernel_us


Record = TypeVar("Record", Columns, Costs)


def _taken(record: Record, places: npt.NDArray[np.bool_]) -> Record:
    """Return some of the kernels."""
    count = len(places)
    return replace(
        record,
        **{f.name: np.broadcast_to(getattr(record, f.name), count)[places] for f in fields(record)},
    )


class Totals:
    """Predicted times of some kernels for one problem after another; none is of stream-K."""

    def __init__(self, t: Columns, spec: ArchSpec, cost: Costs, c: Constants) -> None:
        self._t, self._c = t, c
        self._beyond_k = c.beyond_k
        self._units, self._chiplets = float(spec.compute_units), float(spec.chiplets)
        self._cache = cache_bytes(spec) * _MEGA
        most = int(t.occupancy.max())
        residents = np.arange(1, most + 1, dtype=np.float64)[:, None]
        # Row 0 is the partial round that is not there.
        steps = step_time(cost, residents)
        self._steps: Floats = np.concatenate([np.zeros_like(steps[:1]), steps])
        self._index = np.arange(len(t.tile_m))
        self._full: Floats = self._steps[t.occupancy.astype(np.intp), self._index]
        self._resident = self._units * t.occupancy
        self._step_k = t.tile_k * t.split_k
        self._plain_loop = bool((t.loop_step == 1).all() and (t.loop_least == 1).all())
        self._tail: Floats = c.tail * t.occupancy * cost.work
        self._prologue: Floats = cost.prologue
        self._epilogue: Floats = cost.epilogue
        self._fixed: Floats = c.launch + cost.split
        self._atomics: Floats = (t.split_k > 1) * t.split_k * t.held_out * _MEGA * c.split_atomics
        bytes_b, bytes_out = t.bytes_b * t.held_b, t.bytes_out * t.held_out
        self._column_bytes = t.tile_n * bytes_b
        self._row_bytes = t.tile_m * t.bytes_a
        self._tiles: Floats = (self._column_bytes + self._row_bytes) * t.tile_k * _MEGA / c.l2
        self._fetch = self._chiplets * _MEGA / c.last_level
        self._sizes = [
            (float(x[0]) if (x == x[0]).all() else x) for x in (t.bytes_a, bytes_b, bytes_out)
        ]

    def __call__(self, x: Lengths) -> Floats:
        """Return the predicted time of each kernel in µs, shape [kernels].

        Extents are numbers, or [kernels] where kernels merge groups of a convolution.
        """
        t, (m, n, k, products, unique_fraction) = self._t, x
        rows, columns = np.ceil(m / t.tile_m) * products, np.ceil(n / t.tile_n)
        workgroups = rows * columns * t.split_k
        steps = np.ceil(k / self._step_k)
        if not self._plain_loop:
            steps = loop_steps(t, steps)
        queue = np.ceil(workgroups / self._units)
        rounds = np.floor(queue / t.occupancy)
        last = (queue - rounds * t.occupancy).astype(np.intp)
        per_step = rounds * self._full + self._steps[last, self._index]
        per_step += self._tail * (1.0 - 1.0 / queue)
        needed = steps
        if self._beyond_k:
            needed = steps - self._beyond_k * (steps - k / self._step_k)
        units = needed * per_step + (rounds + (last > 0)) * self._prologue + queue * self._epilogue

        together = np.minimum(workgroups, self._resident)
        own = together / self._chiplets
        own_columns = np.minimum(own, columns)
        own_rows = np.minimum(np.maximum(own / own_columns, 1.0), rows)
        if unique_fraction != WHOLE:
            own_rows, own_columns = own_rows * unique_fraction[0], own_columns * unique_fraction[1]
        fetched = own_columns * self._column_bytes + own_rows * self._row_bytes
        memory = (workgroups / together) * fetched * (k * self._fetch)
        memory += self._operands(x)
        l2 = workgroups * steps * self._tiles

        total = units * np.sqrt(units) + memory * np.sqrt(memory) + l2 * np.sqrt(l2)
        total = np.cbrt(total * total) + self._fixed
        result: Floats = total + (products * m * n) * self._atomics
        return result

    def _operands(self, x: Lengths) -> Extent:
        """Return the time of A, B and the result at memory bandwidth, each moved once."""
        (a, b, out), (m, n, k, products, unique_fraction) = self._sizes, x
        of_a, of_b = m * k * unique_fraction[0], n * k * unique_fraction[1]
        footprint = (of_a * a + of_b * b + (m * n) * out) * (products * _MEGA)
        warm = 1.0 / (1.0 + (footprint / self._cache) ** 2)
        time: Extent = footprint * (warm / self._c.memory_warm + (1.0 - warm) / self._c.memory_cold)
        return time
