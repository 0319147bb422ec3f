# SPDX-License-Identifier: MIT
"""What a window over images takes: the time of memory, of loads or of vector instructions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cklang.arch import ArchSpec
from cklang.families.conv.problem import ConvTensor
from cklang.families.cost_constants import fitted
from cklang.families.memory_cost import memory_time
from cklang.families.protocol import Times
from cklang.families.windows.key import Windowed, WindowKey, block_of, read_places
from cklang.families.windows.problem import WindowProblem
from cklang.families.windows.rules import has_features, loads_of, registers_of
from cklang.ir.windows import Role
from cklang.types import f32

_MICROSECONDS = 1e6
"""In a second."""

_L1_BYTES = 64
"""Bytes that a compute unit's cache gives in a clock."""

_LEAST_CLOCKS = 4
"""Clocks of a load or store of a wave at least."""

_LINE = 64
"""Bytes that memory moves at least."""

_SHARED_LINE = 128
"""Bytes that compute units get from the cache which they share at least."""

_OF_THREAD, _OF_RESULT, _OF_WEIGHT, _OF_SCALAR = 60, 4, 30, 0.3
"""Vector instructions of a thread that do not depend on its tile, of each result, of each weight
that is brought to LDS, and in whose time one is loaded as a scalar."""

_SHOWN = 0.2
"""How much of what overlaps with the longest adds to it."""

_CHAIN = 1500
"""Clocks that a thread waits for its loads at least: from memory, and for its weights."""

_HIDING = 6
"""Waves of a SIMD with which memory is as quick as it can be."""

_WAITED = 0.15
"""How much longer it takes with one wave."""

_MOST_IDLE = 1.3
"""How much longer the vector units take at most because waves come in rounds."""

_PACKED = ("cdna2", "cdna3", "cdna4")
"""GPUs that multiply and add two pairs of f32 in an instruction."""

_CROWDED = 190
"""Registers from which on the compiler, which loads ahead, leaves few waves to a SIMD."""

_REGISTERS = 512
"""Registers of a lane."""

_REACHED = 0.8
"""The share of the memory's published rate that streams get."""

_BYTES_PER_MICROSECOND = 1e6
"""Bytes per microsecond at one TB/s, which fitted bandwidths are counted in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Terms:
    """Times in µs."""

    launch: float
    memory: float
    loads: float
    vector: float

    @property
    def total(self) -> float:
        work = sorted((self.memory, self.loads, self.vector))
        return self.launch + work[2] + _SHOWN * (work[0] + work[1])

    def __str__(self) -> str:
        return (
            f"{self.total:.2f} µs = launch {self.launch:.2f} + memory {self.memory:.2f}, loads "
            f"{self.loads:.2f} and vector instructions {self.vector:.2f}, which overlap"
        )


class WindowCost:
    """The cost model of windows over images."""

    def __init__(self, keys: Sequence[WindowKey], spec: ArchSpec) -> None:
        self._keys, self._spec = tuple(keys), spec

    def times(self, problem: WindowProblem) -> Times:
        """Return the predicted time of each kernel in µs."""
        return np.array([self._terms(key, problem).total for key in self._keys])

    def table(self, places: Sequence[int], problem: WindowProblem) -> list[str]:
        """Return the terms of the kernels at these places as lines of text."""
        keys = [self._keys[place] for place in places]
        return [f"    {key.label}: {self._terms(key, problem)}" for key in keys]

    def terms(self, place: int, problem: WindowProblem) -> Mapping[str, float]:
        """Return what makes up the time of a kernel, in µs."""
        terms = self._terms(self._keys[place], problem)
        rest = terms.total - terms.launch - terms.memory
        return {"launch": terms.launch, "memory": terms.memory, "the rest": rest}

    def _terms(self, key: WindowKey, p: WindowProblem) -> _Terms:
        a, s, spec = key.algorithm, key.signature, self._spec
        x = p.extents
        vectors = max(1, x.groups * x.features // a.vector)
        planes = x.images * math.ceil(x.output[0] / a.planes)
        together = block_of(s, a, vectors)
        tiles = math.ceil(x.output[2] / a.columns) * math.ceil(x.output[1] / a.rows)
        groups = math.ceil(tiles * together / a.threads) * math.ceil(vectors / together) * planes
        waves = groups * a.threads / spec.wave_size
        simds = spec.compute_units * spec.simds_per_cu
        clock = spec.clock_hz / _MICROSECONDS
        registers = 8 * math.ceil(registers_of(a, s) / 8)
        resident = min(8, max(1, _REGISTERS // registers))
        rounds = math.ceil(waves / (simds * resident))
        busy = rounds * simds * resident / waves if rounds > 1 else 1.0
        waited = 1 + _WAITED * max(0.0, 1 - resident / _HIDING)
        waited += max(0.0, registers / _CROWDED - 1)
        of_wave = spec.wave_size / (spec.vector_flops_per_clock / 4 / spec.simds_per_cu)
        loads = self._loads(key, p) * max(waves / spec.compute_units, spec.simds_per_cu)
        vector = self._instructions(key, together) * of_wave * max(waves / simds, 1.0)
        return _Terms(
            launch=memory_time(0, spec),
            memory=max(self._moved(key, p, together) * waited, _CHAIN * rounds / clock),
            loads=loads / clock,
            vector=vector * waited * min(busy, _MOST_IDLE) / clock,
        )

    def _instructions(self, key: WindowKey, together: int) -> float:
        """Return the vector instructions of a thread."""
        a, s = key.algorithm, key.signature
        taps, results = math.prod(s.window) * s.channels, a.pixels * a.vector
        packed = 2 if a.vector > 1 and self._spec.family in _PACKED else 1
        widened = 0 if s.dtype_a == f32 else 1
        loaded = a.vector if s.neighbours else 1
        weights = 0.0
        if s.how is Windowed.PRODUCTS:
            shared = together * a.vector * _OF_WEIGHT / a.threads
            weights = taps * (shared if s.neighbours else (widened + _OF_SCALAR) * a.vector)
        return (
            taps * results / packed
            + loads_of(a, s) * (2 + widened * loaded + has_features(a, s))
            + weights
            + (_OF_RESULT + 2 * len(s.d)) * results
            + _OF_THREAD
        )

    def _moved(self, key: WindowKey, p: WindowProblem, together: int) -> float:
        """Return how long memory takes, in µs: workgroups load the edges of their pixels again."""
        a, s, x = key.algorithm, key.signature, p.extents
        across = math.ceil(x.output[2] / a.columns)
        tiles = max(1, a.threads // together)
        columns = min(across, tiles) * a.columns
        rows = min(max(1, tiles // across) * a.rows, x.output[1])
        edge = 0 if s.neighbours else _LINE // s.dtype_a.bytes
        wide = read_places(columns, s.stride[2], s.window[2], s.dilation[2]) + edge
        high = read_places(rows, s.stride[1], s.window[1], s.dilation[1])
        deep = read_places(a.planes, s.stride[0], s.window[0], s.dilation[0]) / a.planes
        again = max(1.0, wide * high / (columns * rows * s.stride[1] * s.stride[2]))
        if s.window[0] > 1:
            # Planes that follow are far; a plane's edges are near, in part in the L2.
            again = (1 + again) / 2 * max(1.0, deep / s.stride[0])
        c = fitted(self._spec).constants
        if p.bytes <= self._spec.l2_bytes * self._spec.chiplets:
            rate = c.l2 * _BYTES_PER_MICROSECOND
        else:
            rate = _REACHED * self._spec.memory_bytes_per_second / _MICROSECONDS
        read = math.prod(x.extents(Role.INPUT)) * s.dtype_a.bytes
        return (p.bytes + read * (again - 1)) / rate

    def _loads(self, key: WindowKey, p: WindowProblem) -> float:
        """Return the clocks of the loads and stores of a wave."""
        a, s = key.algorithm, key.signature
        stores = a.pixels * (1 + len(s.d)) * (1 if s.neighbours else a.vector)
        loads = loads_of(a, s) * self._clocks(key, p, p.a, s.stride[1])
        return loads + stores * self._clocks(key, p, p.e, 1)

    def _clocks(self, key: WindowKey, p: WindowProblem, tensor: ConvTensor, stride: int) -> float:
        """Return the clocks of a load or a store of a wave: those of the lines that it touches."""
        a, s, wave = key.algorithm, key.signature, self._spec.wave_size
        size = tensor.dtype.bytes
        if not s.neighbours:  # lanes beyond the end of a row of pixels have another one
            row = min(wave, p.extents.output[2]) * size
            next_row = a.rows * stride * tensor.strides[2] * size
            touched = max(row, min(next_row, _SHARED_LINE))
            return max(_LEAST_CLOCKS, wave * size / _L1_BYTES) * touched / row
        full = max(_LEAST_CLOCKS, wave * a.vector * size / _L1_BYTES)
        if a.columns == 1:
            return full
        run = p.extents.groups * p.extents.features * size
        return full * max(1.0, min(_LINE, run * a.columns) / min(_LINE, run))
