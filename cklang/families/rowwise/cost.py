# SPDX-License-Identifier: MIT
"""What a reduction of rows takes: the memory's time, or that of the loads that threads wait for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cklang.arch import ArchSpec
from cklang.families.cost_constants import fitted
from cklang.families.protocol import Times
from cklang.families.rowwise.key import RowwiseKey
from cklang.families.rowwise.problem import RowwiseProblem
from cklang.families.rowwise.rules import BLOCK

__all__ = ["RowwiseCost"]

_RESIDENT = 8
"""Workgroups of 256 threads that a compute unit runs at once; the kernel has few registers."""

_LOADS = 4
"""Loads that a thread has under way: the kernel's loop is unrolled as often."""

_BYTES_PER_MICROSECOND = 1e6
"""Of one TB/s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Terms:
    """Times in µs."""

    launch: float
    memory: float
    """All bytes at the bandwidth of the memory."""
    latency: float
    """The rounds of workgroups, each a chain of loads and of exchanges between lanes."""

    @property
    def total(self) -> float:
        return self.launch + max(self.memory, self.latency)

    def __str__(self) -> str:
        return (
            f"{self.total:.2f} µs = launch {self.launch:.2f} + the longer of memory "
            f"{self.memory:.2f} and latency {self.latency:.2f}"
        )


class RowwiseCost:
    """The cost model of kernels that reduce rows."""

    def __init__(self, keys: Sequence[RowwiseKey], spec: ArchSpec) -> None:
        self._keys, self._spec = tuple(keys), spec
        self._constants = fitted(spec).constants

    def times(self, problem: RowwiseProblem) -> Times:
        """Return the predicted time of each kernel in µs."""
        return np.array([self._terms(key, problem).total for key in self._keys])

    def table(self, places: Sequence[int], problem: RowwiseProblem) -> list[str]:
        """Return the terms of one or two kernels as lines of text."""
        keys = (self._keys[place] for place in places)
        return [f"    {key.label}: {self._terms(key, problem)}" for key in keys]

    def _terms(self, key: RowwiseKey, problem: RowwiseProblem) -> _Terms:
        c, a = self._constants, key.algorithm
        size = problem.length * problem.x.dtype.bytes + problem.y.dtype.bytes
        rounds = math.ceil(problem.rows * a.threads / BLOCK / self._spec.compute_units / _RESIDENT)
        loads = math.ceil(problem.length / (a.threads * a.vector))
        chain = math.ceil(loads / _LOADS) * c.latency_single + loads * c.load_issue
        exchanges = math.log2(a.threads) * c.load_issue
        return _Terms(
            launch=c.launch,
            memory=problem.rows * size / (c.memory_cold * _BYTES_PER_MICROSECOND),
            latency=rounds * (chain + exchanges),
        )
