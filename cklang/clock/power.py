# SPDX-License-Identifier: MIT
"""The clock frequency that a GPU keeps under load, where power limits it.

A GPU runs at its highest clock as long as it needs less power than it may. Bytes from memory and
arithmetic cost power; what they leave is for the clock. The law for vector instructions is linear,
fitted to one kernel on one GPU (``benchmarks/clock_load.py``), and ends at the lowest clock that
was measured; that for matrix instructions of 16 bits has one constant, fitted to five products that
take milliseconds. Cycles do not depend on either.
"""

from __future__ import annotations

from cklang.arch import ArchSpec
from cklang.clock.constants import ClockConstants

__all__ = ["clock_of_products", "clock_under_load"]

_GIGA, _TERA = 1e9, 1e12


def clock_under_load(
    constants: ClockConstants,
    spec: ArchSpec,
    bytes_per_second: float,
    flops_per_second: float,
    *,
    bound_by_memory: bool,
) -> float | None:
    """Return the frequency in Hz of a GPU all of which computes for long; None if not known.

    Args:
        constants: Of the GPU.
        spec: The GPU.
        bytes_per_second: From and to memory, at the highest clock.
        flops_per_second: Of vector instructions in f32, at the highest clock.
        bound_by_memory: Whether memory, which has a clock of its own, sets the pace.

    Example:
        >>> from cklang.arch import arch
        >>> from cklang.clock.constants import constants_of
        >>> gpu = constants_of("gfx942"), arch("gfx942")
        >>> round(clock_under_load(*gpu, 4e12, 1e12, bound_by_memory=True) / 1e6)
        1238
        >>> round(clock_under_load(*gpu, 0.1e12, 1e12, bound_by_memory=False) / 1e6)
        2100
    """
    if "load_clock" not in constants.numbers:
        return None
    highest = spec.clock_hz / 1e6
    lost = constants["load_clock_byte"] * bytes_per_second / _GIGA
    lost += constants["load_clock_flop"] * flops_per_second / _GIGA
    free = constants["load_clock"]
    # Rates that follow the clock cost less the lower it is.
    mhz = free - lost if bound_by_memory else free / (1 + lost / highest)
    return min(highest, max(constants["load_clock_least"], mhz)) * 1e6


def clock_of_products(
    constants: ClockConstants, spec: ArchSpec, flops_per_second: float
) -> float | None:
    """Return the frequency in Hz under matrix instructions on 16 bits; None if not known.

    Args:
        constants: Of the GPU.
        spec: The GPU.
        flops_per_second: Of matrix instructions, at the highest clock.

    Example:
        >>> from cklang.arch import arch
        >>> from cklang.clock.constants import constants_of
        >>> gpu = constants_of("gfx942"), arch("gfx942")
        >>> round(clock_of_products(*gpu, 763e12) / 1e6), round(clock_of_products(*gpu, 1e12) / 1e6)
        (1672, 2099)
    """
    if "load_clock_matrix" not in constants.numbers:
        return None
    return spec.clock_hz / (1 + constants["load_clock_matrix"] * flops_per_second / _TERA)
