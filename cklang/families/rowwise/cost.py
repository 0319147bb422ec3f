# SPDX-License-Identifier: MIT
"""What a kernel of rows takes: the memory's time, or that of the loads that threads wait for."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cklang.arch import ArchSpec
from cklang.dims import ranks
from cklang.families.cost_constants import fitted
from cklang.families.protocol import Times
from cklang.families.rowwise.key import RowwiseAlgorithm, RowwiseKey
from cklang.families.rowwise.problem import RowwiseProblem, RowwiseTensor
from cklang.families.rowwise.rules import BLOCK
from cklang.widths import ACCESS_BYTES

_RESIDENT = 8
"""Workgroups of 256 threads that a compute unit runs at once; the kernel has few registers."""

_LOADS = 4
"""Loads that a thread has under way: the kernel's loop is unrolled as often."""

_MICROSECONDS = 1e6
"""In a second."""

_BYTES_PER_MICROSECOND = 1e6
"""Bytes per microsecond at one TB/s."""

_BYTES_PER_TERABYTE = 1e12

_ISSUED = 100
"""Instructions of a wave that do not depend on its elements: addresses and exchanges."""

_OF_ELEMENT = 4
"""Instructions of a lane for each element in each pass."""

_OF_MAP_ELEMENT = 2
"""The same where nothing is reduced."""

_HIDDEN = {True: 0.125, False: 0.75}
"""How much of the longer of memory and latency hides the other, in kernels that reduce nothing or
something."""

_SHOWN = 0.67
"""What the rest of the other adds."""

_QUIET = 0.25
"""Workgroups for each compute unit that are not in each other's way, in such a kernel."""

_LINE = 64
"""Bytes that memory moves at least."""

_DIVIDED = 1.15
"""The time of vectors that take several accesses, each of a part of the lines, over that of others:
by the clock, f32 of 268 MB on an MI300X."""

_FROM_L2, _FROM_LAST_LEVEL, _FROM_MEMORY = 1.5, 3.1, 4.4
"""How long the loads of a reduction take, by what holds its tensors: multiples of the latency of a
product's operands, by the clock (benchmarks/rows_choice.py, f32 on an MI300X)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Terms:
    """Times in µs."""

    launch: float
    memory: float
    """All bytes at the bandwidth of the memory."""
    latency: float
    """The rounds of workgroups, each a chain of loads and of exchanges between lanes, and the
    instructions of the waves that share a SIMD."""

    hidden: float
    """The part of the longer one that hides the other."""

    @property
    def together(self) -> float:
        """Memory and latency, which overlap."""
        long, short = max(self.memory, self.latency), min(self.memory, self.latency)
        return long + _SHOWN * max(0.0, short - self.hidden * long)

    @property
    def total(self) -> float:
        return self.launch + self.together

    def __str__(self) -> str:
        return (
            f"{self.total:.2f} µs = launch {self.launch:.2f} + {self.together:.2f}, in which "
            f"memory {self.memory:.2f} and latency {self.latency:.2f} overlap"
        )


class _Traffic(NamedTuple):
    """What is the same for all kernels of a problem."""

    tensors: tuple[RowwiseTensor, ...]
    bytes: int
    latency: float
    """How long a load takes in µs."""
    rate: float
    """The bandwidth in TB/s."""


class RowwiseCost:
    """The cost model of kernels of rows."""

    def __init__(self, keys: Sequence[RowwiseKey], spec: ArchSpec) -> None:
        self._keys, self._spec = tuple(keys), spec
        self._constants = fitted(spec).constants

    def times(self, problem: RowwiseProblem) -> Times:
        """Return the predicted time of each kernel in µs."""
        return np.array([terms.total for terms in self._all_terms(self._keys, problem)])

    def table(self, places: Sequence[int], problem: RowwiseProblem) -> list[str]:
        """Return the terms of one or two kernels as lines of text."""
        keys = [self._keys[place] for place in places]
        terms = self._all_terms(keys, problem)
        return [f"    {key.label}: {own}" for key, own in zip(keys, terms, strict=True)]

    def terms(self, place: int, problem: RowwiseProblem) -> Mapping[str, float]:
        """Return what makes up the time of a kernel, in µs: latency that memory does not hide."""
        (t,) = self._all_terms([self._keys[place]], problem)
        return {"launch": t.launch, "memory": t.memory, "latency": max(0.0, t.together - t.memory)}

    @ranks
    def _all_terms(self, keys: Sequence[RowwiseKey], problem: RowwiseProblem) -> list[_Terms]:
        moved = problem.bytes
        traffic = _Traffic(problem.tensors, moved, *self._reach(problem, moved))
        return [self._terms(key, problem, traffic) for key in keys]

    def _terms(self, key: RowwiseKey, problem: RowwiseProblem, traffic: _Traffic) -> _Terms:
        c, a, s = self._constants, key.algorithm, key.signature
        passes = 1 if a.chunks or not s.kept else len(s.reductions) + bool(s.elements)
        block = max(a.threads, BLOCK)
        resident = self._spec.compute_units * _RESIDENT * BLOCK // block
        count, length = problem.count, problem.length
        # Threads of a workgroup beyond the last row are idle.
        groups, shares = math.ceil(count * a.threads / block), 1
        if s.is_map:
            shares = max(1, min(math.ceil(length / (a.threads * a.vector)), resident // groups))
        rounds = math.ceil(groups * shares / max(resident, 1))
        vectors = math.ceil(length / (a.threads * a.vector * shares))
        # Loads of one element each, where a tensor has no vectors.
        loads = sum(1 if tensor.access in "cb" else a.vector for tensor in traffic.tensors)
        wait = math.ceil(vectors / _LOADS) * traffic.latency
        chain = passes * (wait + vectors * loads * c.load_issue)
        exchanges = len(s.reductions) * math.log2(max(a.threads, 2)) * c.load_issue
        memory = traffic.bytes / (traffic.rate * _BYTES_PER_MICROSECOND)
        again = (passes - 1) * traffic.bytes / (c.memory_warm * _BYTES_PER_MICROSECOND)
        return _Terms(
            launch=c.launch,
            memory=(memory + again) * self._waste(problem, traffic, a),
            latency=rounds * (chain + exchanges)
            + self._issue(key, groups * shares, vectors, passes),
            hidden=_HIDDEN[s.is_map],
        )

    def _reach(self, problem: RowwiseProblem, moved: int) -> tuple[float, float]:
        """Return how long a load takes in µs and the bandwidth in TB/s, by what holds tensors."""
        spec, c = self._spec, self._constants
        if problem.signature.is_map:
            return c.latency_single, c.memory_cold
        if moved <= spec.l2_bytes * spec.chiplets:
            return _FROM_L2 * c.latency_single, c.l2
        if moved <= spec.last_level_cache_bytes:
            return _FROM_LAST_LEVEL * c.latency_single, c.memory_warm
        published = spec.memory_bytes_per_second / _BYTES_PER_TERABYTE
        return _FROM_MEMORY * c.latency_single, min(c.memory_cold, published)

    def _issue(self, key: RowwiseKey, workgroups: int, vectors: int, passes: int) -> float:
        """Return how long the busiest SIMD issues: idle lanes take as long as others.

        Of two kernels that are busy for the same time, the one with fewer instructions is better.
        So the mean of all SIMDs counts too, where there are many workgroups.
        """
        a, spec = key.algorithm, self._spec
        block = max(a.threads, BLOCK)
        groups = math.ceil(workgroups / spec.compute_units)
        waves = math.ceil(block / spec.wave_size / spec.simds_per_cu)
        crowd = max(0.0, workgroups / spec.compute_units - _QUIET) if key.signature.is_map else 0.0
        mean = crowd * block / spec.wave_size / spec.simds_per_cu
        of_element = _OF_MAP_ELEMENT if key.signature.is_map else _OF_ELEMENT
        instructions = _ISSUED + vectors * a.vector * of_element * passes
        return (groups * waves + mean) * instructions / spec.clock_hz * _MICROSECONDS

    def _waste(
        self, problem: RowwiseProblem, traffic: _Traffic, algorithm: RowwiseAlgorithm
    ) -> float:
        """Return how many bytes memory moves for each that is needed: lines are used in part.

        Neighbouring lanes are neighbours along a row or, with one thread a row, along rows. Where
        neighbours along rows are neighbours in memory, the rows of a workgroup share lines; that is
        counted where nothing is reduced.
        """
        rows = max(BLOCK // algorithm.threads, 1)
        shared = algorithm.threads > 1 and problem.signature.is_map
        used = []
        for operand in traffic.tensors:
            steps = operand.rows if algorithm.threads == 1 else operand.elements
            step = abs(steps[-1]) if steps else 0
            wide = algorithm.vector if operand.access == "c" else 1
            if shared and operand.rows and abs(operand.rows[-1]) == 1:
                wide = max(wide, min(rows, problem.rows[-1]))
            size = operand.dtype.bytes
            line = min(_LINE, max(step * size, size)) / size
            used.append(max(line / wide, 1.0) if step > wide else 1.0)
        waste = max(used, default=1.0)
        widest = max((tensor.dtype.bytes for tensor in traffic.tensors), default=1)
        if algorithm.vector * widest > ACCESS_BYTES and problem.signature.elements:
            waste *= _DIVIDED
        if not problem.signature.is_map:
            return waste
        # What of the lines is not used at once is used later, as far as the L2 cache holds them.
        lost = (traffic.bytes / self._spec.l2_bytes) ** 4
        return 1.0 + (waste - 1.0) * lost / (1.0 + lost)
