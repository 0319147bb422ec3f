# SPDX-License-Identifier: MIT
"""What a kernel takes that does little but move memory, and what cost models read of a GPU."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from cklang.arch import ArchSpec
from cklang.dims import ranks
from cklang.errors import error
from cklang.families.cost_constants import fitted
from cklang.keys import AnyKey
from cklang.types import DType, Kind


def cache_bytes(spec: ArchSpec) -> float:
    """Return the size of the last cache before the memory."""
    return float(spec.last_level_cache_bytes or spec.l2_bytes * spec.chiplets)


def matrix_rate(spec: ArchSpec, dtype: DType) -> float:
    """Return the matrix rate of one compute unit for A and B of ``dtype``, per clock."""
    wanted = "fp8" if dtype.kind is Kind.FLOAT and dtype.bits == 8 else dtype.name
    for rate in spec.matrix_rates:
        if rate.dtype == wanted:
            return float(rate.flops_per_clock)
    known = ", ".join(rate.dtype for rate in spec.matrix_rates)
    raise error("N002", gpu=spec.name, dtype=dtype.name, known=known)


_BYTES_PER_MICROSECOND = 1e6
"""Bytes per microsecond at one TB/s."""


class MovesBytes(Protocol):
    """A problem that knows what its kernel moves."""

    @property
    def bytes(self) -> int:
        """All that it reads and writes, each element once."""


@ranks
def memory_time(count: int, spec: ArchSpec) -> float:
    """Return the time of a launch that moves so many bytes, in µs.

    Example:
        >>> from cklang.arch import arch
        >>> memory_time(1 << 30, arch("gfx942")) > memory_time(0, arch("gfx942")) > 0
        True
    """
    constants = fitted(spec).constants
    return constants.launch + count / (constants.memory_cold * _BYTES_PER_MICROSECOND)


class MemoryCost:
    """The cost model of kernels that have no choices."""

    def __init__(self, keys: Sequence[AnyKey], spec: ArchSpec) -> None:
        self._keys, self._spec = tuple(keys), spec

    def times(self, problem: MovesBytes) -> Any:
        """Return the predicted time of each kernel in µs: the same of all."""
        return np.full(len(self._keys), memory_time(problem.bytes, self._spec))

    def table(self, places: Sequence[int], problem: MovesBytes) -> list[str]:
        """Return the terms of the kernels at these places as lines of text."""
        launch = memory_time(0, self._spec)
        total = memory_time(problem.bytes, self._spec)
        terms = f"{total:.2f} µs = launch {launch:.2f} + memory {total - launch:.2f}"
        return [f"    {self._keys[place].label}: {terms}" for place in places]

    def terms(self, place: int, problem: MovesBytes) -> Mapping[str, float]:
        """Return what makes up the time of a kernel, in µs."""
        del place  # all alike
        launch = memory_time(0, self._spec)
        return {"launch": launch, "memory": memory_time(problem.bytes, self._spec) - launch}
