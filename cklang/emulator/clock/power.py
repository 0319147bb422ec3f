# SPDX-License-Identifier: MIT
"""The clock frequency that a GPU keeps under load, where power limits it.

A GPU runs at its highest clock as long as it needs less power than it may. Bytes from memory and
arithmetic cost power; what they leave is for the clock. The law for vector instructions is linear,
fitted to one kernel on one GPU (``benchmarks/clock_load.py``), and ends at the lowest clock that
was measured. That for matrix instructions makes cycles longer in proportion to their rate, by the
kind of elements and the board, beyond what the board bears at its highest clock; it follows from
what the quickest products attain. Cycles do not depend on either.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from cklang.arch import ArchSpec
from cklang.emulator.clock.constants import BoardPower, ClockConstants
from cklang.emulator.clock.matrix import KINDS, matrix_shape
from cklang.emulator.clock.native import UNITS
from cklang.errors import error

if TYPE_CHECKING:
    from cklang.emulator.clock.kernel import LaunchDetail

_GIGA, _TERA = 1e9, 1e12


def clock_under_load(
    constants: ClockConstants,
    spec: ArchSpec,
    bytes_per_second: float,
    flops_per_second: float,
    *,
    bound_by_memory: bool,
) -> float | None:
    """Return the frequency in Hz of a GPU that is busy for long; None if not known.

    Args:
        constants: Of the GPU.
        spec: The GPU.
        bytes_per_second: From and to memory, at the highest clock.
        flops_per_second: Of vector instructions in f32, at the highest clock.
        bound_by_memory: Whether memory, which has a clock of its own, sets the pace.

    Example:
        >>> from cklang.arch import arch
        >>> from cklang.emulator.clock.constants import constants_of
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


def board_of(constants: ClockConstants, name: str | None = None) -> BoardPower | None:
    """Return a board of a GPU, the first one by default; None if no board's power is known.

    Example:
        >>> from cklang.emulator.clock.constants import constants_of
        >>> board_of(constants_of("gfx942"), "MI325X").cost["bf16"]
        0.000369
    """
    if name is None:
        return next(iter(constants.boards), None)
    for board in constants.boards:
        if board.board == name:
            return board
    known = ", ".join(board.board for board in constants.boards) or "none"
    raise error("K050", what="power", name=name, known=known)


def matrix_rates(detail: LaunchDetail) -> dict[str, float]:
    """Return the FLOP/s of a launch's matrix instructions at the highest clock, by kind.

    The kinds are those of ``clock.matrix.KINDS``; other types stand under their own names.
    """
    lines = np.flatnonzero(detail.prog.unit == UNITS.index("matrix"))
    executed = np.zeros(len(detail.listing), np.int64)
    for stream in detail.streams:
        executed += np.bincount(stream.line, minlength=len(executed))
    share = prod(detail.launch.groups) / detail.detailed
    seconds = detail.cycles / detail.spec.clock_hz
    rates: dict[str, float] = {}
    for line in lines[executed[lines] > 0].tolist():
        instruction = detail.listing[line]
        shape = matrix_shape(instruction.op, instruction.remark)
        if shape is None:
            continue
        kind = KINDS.get(shape.dtype, shape.dtype)
        flops = 2.0 * shape.multiplies * float(executed[line]) * share
        rates[kind] = rates.get(kind, 0.0) + flops / seconds
    return rates


def clock_of_products(
    board: BoardPower, spec: ArchSpec, rates: Mapping[str, float]
) -> float | None:
    """Return the frequency in Hz under matrix instructions; None if one's cost is not known.

    Args:
        board: Of the GPU.
        spec: The GPU.
        rates: FLOP/s of matrix instructions at the highest clock, by kind.

    Example:
        >>> from cklang.arch import arch
        >>> from cklang.emulator.clock.constants import constants_of
        >>> board, gpu = board_of(constants_of("gfx942"), "MI325X"), arch("gfx942")
        >>> round(clock_of_products(board, gpu, {"bf16": 763e12}) / 1e6)
        1639
        >>> board, gpu = board_of(constants_of("gfx950")), arch("gfx950")
        >>> [round(clock_of_products(board, gpu, {"bf16": at}) / 1e6) for at in (0.7e15, 1.6e15)]
        [2400, 1903]
    """
    if any(kind not in board.cost for kind in rates):
        return None
    taken = sum(board.cost[kind] * rate / _TERA for kind, rate in rates.items())
    return spec.clock_hz / (1 + max(0.0, taken - board.free))


def us_under_load(detail: LaunchDetail, board: BoardPower) -> float | None:
    """Return the µs of a launch at the clock that power leaves; None if that is not known.

    Args:
        detail: The launch, one of many in a row on the whole GPU.
        board: Of the GPU.
    """
    clock = clock_of_products(board, detail.spec, matrix_rates(detail))
    return None if clock is None else detail.cycles / clock * 1e6
