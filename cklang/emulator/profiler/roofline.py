# SPDX-License-Identifier: MIT
"""Floating-point operations, the busy share of each unit, and the roofline."""

import re
from dataclasses import dataclass
from functools import cache

import numpy as np

from cklang.emulator.clock.matrix import matrix_shape
from cklang.emulator.profiler.facts import LaunchFacts

_FLOPS = (
    (re.compile(r"v_(dual_)?(fma|fmac|fmaak|fmamk|mad|mac|fma_mix\w*)_\w*f(16|32|64)"), 2),
    (re.compile(r"v_(dual_)?(add|sub|subrev|mul|rcp|rsq|sqrt|exp|log|sin|cos)_f(16|32|64)"), 1),
)
_PACKED = ((re.compile(r"v_pk_fma_f(16|32)"), 4), (re.compile(r"v_pk_(add|mul)_f(16|32)"), 2))


@cache
def flops_of_lane(op: str) -> int:
    """Return the floating-point operations of one lane of a vector instruction.

    Example:
        >>> flops_of_lane("v_fma_f32"), flops_of_lane("v_pk_mul_f32"), flops_of_lane("v_mov_b32")
        (2, 2, 0)
    """
    return next((flops for pattern, flops in (*_PACKED, *_FLOPS) if pattern.match(op)), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How much of a unit of the GPU a launch uses."""

    name: str
    used: float
    peak: float
    unit: str

    @property
    def share(self) -> float:
        """Share of the peak."""
        return self.used / self.peak if self.peak else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """A launch in the roofline of its GPU."""

    flops: float
    """Floating-point operations of all lanes; a multiply-add is two."""
    bytes: float
    """Bytes of memory that the launch touches, each counted once."""
    us: float
    peak_flops: float
    """A second, of the units that the launch uses: of matrix units if it executes matrix
    instructions."""
    peak_bytes: float
    """A second, of memory."""

    @property
    def intensity(self) -> float:
        """Operations a byte."""
        return self.flops / self.bytes if self.bytes else 0.0

    @property
    def flops_per_second(self) -> float:
        """What the launch reaches."""
        return self.flops / self.us * 1e6 if self.us else 0.0

    @property
    def bytes_per_second(self) -> float:
        """What the launch moves."""
        return self.bytes / self.us * 1e6 if self.us else 0.0

    @property
    def bound(self) -> str:
        """Which roof is above the launch: ``memory`` or ``compute``."""
        return "memory" if self.intensity * self.peak_bytes < self.peak_flops else "compute"

    @property
    def share(self) -> float:
        """Share of the roof: memory's rate left of the ridge, the units' rate right of it."""
        if self.bound == "memory":
            return self.bytes_per_second / self.peak_bytes
        return self.flops_per_second / self.peak_flops


def _matrix_flops(facts: LaunchFacts) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the operations of one execution of each matrix instruction, [line]."""
    shapes = (matrix_shape(instruction.op) for instruction in facts.detail.listing)
    return np.array([0.0 if shape is None else 2.0 * shape.multiplies for shape in shapes])


def roofline_of(facts: LaunchFacts, us: float) -> Roofline:
    """Return where a launch is in the roofline."""
    spec = facts.detail.spec
    flops = np.array([flops_of_lane(instruction.op) for instruction in facts.detail.listing])
    active = np.divide(facts.lanes, np.maximum(facts.sampled, 1))
    vector = float((flops * active * facts.executed).sum())
    by_matrix = _matrix_flops(facts)
    matrix = float((by_matrix * facts.executed).sum())
    peak = spec.vector_flops_per_clock * spec.compute_units * spec.clock_hz
    if matrix:
        busy = facts.detail.prog.busy
        cycles = float((busy * facts.executed * (by_matrix > 0)).sum())
        peak = matrix / cycles * spec.simds_per_cu * spec.compute_units * spec.clock_hz
    return Roofline(
        flops=vector + matrix,
        bytes=facts.detail.footprint,
        us=us,
        peak_flops=peak,
        peak_bytes=spec.memory_bytes_per_second,
    )


def _address_cycles(facts: LaunchFacts) -> float:
    """Return the cycles of the L1 for addresses: a piece of 64 bytes each, where they are known."""
    vector = facts.of_units("vmem", "store")
    cycles = facts.detail.prog.busy * facts.executed
    if "rate_l2" in facts.detail.prog.constants.numbers:
        cycles = np.maximum(cycles, facts.segments * facts.scale)
    return float(cycles[vector].sum())


def limits_of(facts: LaunchFacts, roofline: Roofline, cycles: float) -> tuple[Limit, ...]:
    """Return how busy each unit is over the whole GPU, the busiest first."""
    detail = facts.detail
    spec = detail.spec
    busy = detail.prog.busy.astype(np.float64)
    units = spec.compute_units * max(cycles, 1.0)
    simds = units * spec.simds_per_cu

    def cycles_of(*names: str) -> float:
        return float((busy * facts.executed)[facts.of_units(*names)].sum())

    rows = [
        Limit(name="matrix units", used=cycles_of("matrix"), peak=simds, unit="cycles"),
        Limit(name="vector units", used=cycles_of("valu", "trans"), peak=simds, unit="cycles"),
        Limit(name="scalar units", used=cycles_of("salu"), peak=simds, unit="cycles"),
        Limit(
            name="LDS", used=float(facts.lds_cycles.sum()) * facts.scale, peak=units, unit="cycles"
        ),
        Limit(name="L1 addresses", used=_address_cycles(facts), peak=units, unit="cycles"),
        Limit(
            name="memory",
            used=roofline.bytes_per_second / 1e9,
            peak=roofline.peak_bytes / 1e9,
            unit="GB/s",
        ),
    ]  # fmt: skip
    return tuple(sorted(rows, key=lambda row: -row.share))
