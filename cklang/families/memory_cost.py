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


def cache_bytes(spec: ArchSpec) -> float:
    """Return the size of the last cache before the memory."""
    return float(spec.last_level_cache_bytes or spec.l2_bytes * spec.chiplets)


def matrix_rate(
    spec: ArchSpec,
    types: tuple[str, str, str],
    warp_tile: tuple[int, int, int],
    *,
    sparse: bool = False,
) -> float:
    """Return what the instruction of a warp tile does per clock on a compute unit.

    Args:
        spec: The GPU.
        types: The families of A, B and the accumulator.
        warp_tile: Of a kernel.
        sparse: Whether A is in 2:4 form; its zeros count.

    Example:
        >>> from cklang.arch import arch
        >>> gpu, types = arch("gfx950"), ("fp8", "fp8", "f32")
        >>> [matrix_rate(gpu, types, tile) for tile in ((32, 32, 16), (16, 16, 128))]
        [4096.0, 8192.0]
    """
    rates = {rate.dtype: rate.flops_per_clock for rate in spec.matrix_rates}
    dtype = types[0]
    known = rates.get("fp8" if dtype == "bf8" else dtype)
    if known is None:
        raise error("N002", gpu=spec.name, dtype=dtype, known=", ".join(rates))
    rows = spec.tile_rows(*types, sparse=sparse)
    return known * next((row.rate for row in rows if row.extents == warp_tile), 1.0)


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
