# SPDX-License-Identifier: MIT
"""The equations of the cost model, over arrays: [kernels] for kernels, [problems, 1] for problems.

``geometry`` counts (no free constant enters), ``costs`` prices one K step of each kernel, ``times``
puts both together. The array module is an argument, so that the fit can differentiate the very
code that predicts.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cklang.arch import ArchSpec
from cklang.families.cost_constants import Constants
from cklang.families.gemm.cost.traits import Columns
from cklang.families.memory_cost import cache_bytes

# NumPy arrays, or the tracing arrays of whichever module differentiates them.
Array = Any

_MEGA = 1e-6
_SCALE_GRANULE = 128.0
_COMFORTABLE_REGISTERS = 216.0
_SHARPNESS = 32.0
# What a register in memory adds to the work of a K step, by the clock: 55 of them make a product of
# 4096 x 4096 x 4096 in fp8 take 242 us where the half of its tile along K takes 118
# (benchmarks/masked_loads.py). No published kernel is known to spill.
_SPILLED = 0.02


@dataclass(frozen=True, slots=True)
class Geometry:
    """How a problem falls into tiles, workgroups and bytes; traffic in MB (= TB/s times µs)."""

    steps: Array
    """K steps of one workgroup."""
    beyond: Array
    """How many of them, in parts too, are of elements beyond K."""
    workgroups: Array
    queue: Array
    """Workgroups that the busiest compute unit runs."""
    rounds: Array
    """Full rounds: as many of them as fit together."""
    last: Array
    """Workgroups of the last, partial round; 1 if there is none."""
    partial: Array
    """1 if there is a partial round."""
    last_level: Array
    footprint: Array
    warm: Array
    """Part of the footprint that the last-level cache still holds."""
    l2: Array
    finished: Array
    """Tiles that one workgroup finishes; 1 unless it is of a stream-K kernel."""
    atomics: Array
    """Millions of sums that workgroups of a split-K or stream-K launch leave for each other."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Prices of one K step and one workgroup of each kernel, in µs."""

    matrix: Array
    lds: Array
    vector: Array
    load: Array
    issue: Array
    work: Array
    """Their sum: what one more workgroup on the same compute unit adds to a K step."""
    latency: Array
    """The shortest a K step can be."""
    prologue: Array
    epilogue: Array
    split: Array


@dataclass(frozen=True, slots=True)
class Times:
    """Parts of the prediction in µs."""

    launch: Array
    split: Array
    steps: Array
    prologues: Array
    epilogues: Array
    tail: Array
    units: Array
    """Work of the busiest compute unit: steps, prologues, epilogues and tail."""
    memory: Array
    l2: Array
    total: Array


def geometry(
    t: Columns,
    spec: ArchSpec,
    m: Array,
    n: Array,
    k: Array,
    products: Array = 1.0,
    unique_fraction: tuple[float, float] = (1.0, 1.0),
) -> Geometry:
    """Count tiles, rounds and traffic of problems (m, n, k) on each kernel.

    Several products of one launch stand one under the other: their tiles are rows of tiles. For
    kernels that merge groups of a convolution the extents are those of merged groups, [kernels].
    ``unique_fraction`` is the part of A and of B that is no repetition of other elements: what is
    read again soon comes from L2.
    """
    units, chiplets = float(spec.compute_units), float(spec.chiplets)
    rows, columns = products * np.ceil(m / t.tile_m), np.ceil(n / t.tile_n)
    workgroups, share = shared_out(t, units, rows * columns, np.ceil(k / t.tile_k))
    queue = np.ceil(workgroups / units)
    rounds = np.floor(queue / t.occupancy)
    last = queue - rounds * t.occupancy
    steps = loop_steps(t, np.ceil(share))
    together = np.minimum(workgroups, units * t.occupancy)
    # Consecutive workgroups go to consecutive chiplets and walk down a group of rows first, so
    # that the tiles of one chiplet lie in few rows and in many columns.
    own_columns = np.minimum(together / chiplets, columns)
    own_rows = np.minimum(np.maximum(together / (own_columns * chiplets), 1.0), rows)
    asked_b, bytes_out = t.bytes_b * t.held_b, t.bytes_out * t.held_out
    bytes_a, bytes_b = t.bytes_a * unique_fraction[0], asked_b * unique_fraction[1]
    bytes_per_k = own_columns * t.tile_n * bytes_b + own_rows * t.tile_m * bytes_a
    moved = (m * bytes_a + n * bytes_b) * k + m * n * bytes_out
    footprint = products * moved * _MEGA
    cache = cache_bytes(spec) * _MEGA
    return Geometry(
        steps=steps,
        beyond=steps - share * k / (t.tile_k * np.ceil(k / t.tile_k)),
        workgroups=workgroups,
        queue=queue,
        rounds=rounds,
        last=np.maximum(last, 1.0),
        partial=(last > 0) * 1.0,
        last_level=workgroups / together * chiplets * bytes_per_k * k * _MEGA,
        footprint=footprint,
        warm=1.0 / (1.0 + np.square(footprint / cache)),
        l2=workgroups * steps * t.tile_k * (t.tile_m * t.bytes_a + t.tile_n * asked_b) * _MEGA,
        finished=np.maximum((t.stream > 0) * np.ceil(rows * columns / workgroups), 1.0),
        atomics=added(t, products * m, n, workgroups) * _MEGA,
    )


def shared_out(t: Columns, units: float, tiles: Array, k_tiles: Array) -> tuple[Array, Array]:
    """Return the workgroups of a launch, and the K tiles of each, in parts too.

    Split-K gives each tile so many; stream-K gives all steps of all tiles to as many workgroups as
    run at once.
    """
    streams = np.minimum(np.maximum(t.stream, 1.0) * units, np.maximum(tiles * k_tiles, 1.0))
    workgroups = np.where(t.stream > 0, streams, tiles * t.split_k)
    share = np.where(t.stream > 0, tiles * k_tiles / streams, k_tiles / t.split_k)
    return workgroups, share


def added(t: Columns, m: Array, n: Array, workgroups: Array) -> Array:
    """Return the sums that workgroups leave for each other, in elements.

    In split-K all of E from each piece; in stream-K two tiles a workgroup at most: where its share
    begins and where it ends.
    """
    streams = 2.0 * workgroups * t.tile_m * t.tile_n
    return np.where(t.stream > 0, streams, (t.split_k > 1) * m * n * t.held_out * t.split_k)


def loop_steps(t: Columns, tiles: Array) -> Array:
    """Return how many K steps a loop takes for so many K tiles, those of padding included."""
    return np.maximum(np.ceil(tiles / t.loop_step) * t.loop_step, t.loop_least)


def costs(t: Columns, spec: ArchSpec, c: Constants) -> Costs:
    """Price one K step of each kernel."""
    clock = spec.clock_hz * _MEGA
    area = t.tile_m * t.tile_n
    tile_bytes = t.tile_m * t.bytes_a + t.tile_n * t.bytes_b
    staged = t.tile_m * t.bytes_a + t.b_in_lds * t.tile_n * t.bytes_b
    # Every wave reads its rows of A and its columns of B; waves side by side read the same ones.
    read = t.tile_m * t.bytes_a * t.waves_n + t.b_in_lds * t.tile_n * t.bytes_b * t.waves_m
    scalings = (t.scale_k > 0) * np.maximum(t.tile_k / np.maximum(t.scale_k, 1.0), 1.0)
    single = 1.0 - t.prefetches
    excess = np.maximum(0.0, t.registers - _COMFORTABLE_REGISTERS) / 256.0
    factor = (t.prefetches + single * c.single_stage) * (1.0 + single * excess * c.spill)
    factor = factor * (1.0 + _SPILLED * t.spills)
    matrix = c.matrix * factor * 2.0 * area * t.tile_k / (t.matrix_rate * clock)
    lds = c.lds * factor * (staged + read) * t.tile_k / (spec.lds_bytes_per_clock * clock)
    vector = c.vector * factor * scalings * area * 4.0 / (spec.vector_flops_per_clock * clock)
    load = c.load * factor * tile_bytes * t.tile_k / (spec.l1_bytes_per_clock * clock)
    work = matrix + lds + vector + load + c.issue
    # Waves that share a SIMD overlap: to a wave only its own part of the work is serial.
    alone = np.minimum(1.0, spec.simds_per_cu / t.waves)
    pieces = t.tile_m * t.bytes_a / t.width_a + t.tile_n * t.bytes_b / t.width_b
    loads = pieces * t.tile_k / (spec.wave_size * t.waves)
    latency = (
        t.prefetches * (c.latency_prefetch + c.serial_prefetch * alone * work)
        + single * (c.latency_single + c.serial_single * alone * work + c.chain * t.chains)
        + c.load_issue * loads
    )
    written = area * t.bytes_out
    return Costs(
        matrix=matrix,
        lds=lds,
        vector=vector,
        load=load,
        issue=c.issue + 0.0 * work,
        work=work,
        latency=latency,
        prologue=c.prologue
        + c.epilogue_latency * written / 32768.0
        + t.prefetches * c.fill * latency,
        epilogue=c.epilogue * written / 65536.0,
        split=((t.split_k > 1) | (t.stream > 0)) * c.split,
    )


def step_time(cost: Costs, residents: Array) -> Array:
    """Return the time of one K step while ``residents`` workgroups share a compute unit.

    The larger of latency and the work of all of them; rounded off a little, so that a fit can
    follow it.
    """
    ratio = residents * cost.work / cost.latency
    return cost.latency * (1.0 + ratio**_SHARPNESS) ** (1.0 / _SHARPNESS)


def needed_steps(g: Geometry, c: Constants) -> Array:
    """Return the K steps of one workgroup as far as they take time: less for those beyond K."""
    return g.steps - c.beyond_k * g.beyond


def times(
    t: Columns, g: Geometry, cost: Costs, c: Constants, full_step: Array, last_step: Array
) -> Times:
    """Put counts and prices together.

    ``full_step`` is a K step with all the workgroups that fit, ``last_step`` one of the last,
    partial round.
    """
    needed = needed_steps(g, c)
    steps = needed * (g.rounds * full_step + g.partial * last_step)
    prologues = (g.rounds + g.partial) * cost.prologue
    epilogues = g.queue * g.finished * cost.epilogue
    tail = c.tail * (1.0 - 1.0 / g.queue) * needed * t.occupancy * cost.work
    units = steps + prologues + epilogues + tail
    cold = 1.0 - g.warm
    memory = g.last_level / c.last_level
    memory = memory + g.footprint * (g.warm / c.memory_warm + cold / c.memory_cold)
    l2 = g.l2 / c.l2
    # Three resources that overlap in part: a smooth maximum with exponent 3/2.
    together = (units**1.5 + memory**1.5 + l2**1.5) ** (2.0 / 3.0)
    split = cost.split + c.split_atomics * g.atomics
    return Times(
        launch=c.launch + 0.0 * together,
        split=split + 0.0 * together,
        steps=steps,
        prologues=prologues,
        epilogues=epilogues,
        tail=tail,
        units=units,
        memory=memory,
        l2=l2,
        total=c.launch + split + together,
    )
