# SPDX-License-Identifier: MIT
"""Banks of the LDS: how many passes an instruction takes for the addresses of its lanes.

An instruction is served in phases, each for some of the lanes of the wave. Lanes of one phase
conflict where they access different words of one bank; each further word of a bank is a pass more.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cklang.emulator.clock.constants import ClockConstants, LdsWidth
from cklang.emulator.clock.instruction import lane_bytes
from cklang.emulator.clock.native import UNITS, lds_passes
from cklang.emulator.engine.recording import DISABLED

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.int32]
LANES = 64
_HALF = 32
_QUAD = 4
_WORD = 4


def _in_order(lane: Integers, lanes: int) -> Integers:
    return lane // lanes


def _by_parity(lane: Integers, lanes: int) -> Integers:
    quad = lane % _HALF // _QUAD
    odd = (quad ^ quad >> 1 ^ quad >> 2) & 1
    return lane // _HALF * (_HALF // lanes) + odd


def _quads_across(lane: Integers, lanes: int) -> Integers:
    quad = lane % _HALF // _QUAD
    pair = np.where(quad < _QUAD, quad, quad - _QUAD ^ 1)
    return lane // _HALF * (_HALF // lanes) + pair


PHASES: dict[str, Callable[[Integers, int], Integers]] = {
    "in order": _in_order,
    "by parity": _by_parity,
    "quads across": _quads_across,
}
"""From the numbers of lanes, and of lanes a phase, to the phase of each.

``in order``: neighbours. ``by parity``: in each half of 32 lanes, first the groups of four whose
number has an even number of ones. ``quads across``: in each half, the groups of four in the pairs
(0, 5), (1, 4), (2, 7) and (3, 6).
"""


def phase_of_lane(width: LdsWidth) -> Integers:
    """Return the phase in which each of 64 lanes is served, [lane].

    Example:
        >>> from cklang.emulator.clock.constants import constants_of
        >>> phase_of_lane(width_of(constants_of("gfx950"), "read", 16))[:16].tolist()
        [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0]
    """
    return PHASES[width.phases](np.arange(LANES), width.lanes)


def width_of(constants: ClockConstants, direction: str, width: int) -> LdsWidth:
    """Return how accesses of ``width`` bytes a lane are served; narrow ones as those of a word.

    Args:
        constants: Of the GPU.
        direction: ``read`` or ``write``.
        width: Bytes that each lane accesses.
    """
    rows = sorted((r for r in constants.lds if r.direction == direction), key=lambda r: r.bytes)
    return next((row for row in rows if width <= row.bytes), rows[-1])


def passes(width: LdsWidth, address: Integers, active: Integers | None = None) -> int:
    """Return the passes of one instruction: at least one for each phase that has an active lane.

    Args:
        width: How its accesses are served.
        address: Byte address of each lane, [lane].
        active: Numbers of the lanes that take part; all by default.

    Example:
        >>> from cklang.emulator.clock.constants import constants_of
        >>> b128 = width_of(constants_of("gfx950"), "read", 16)
        >>> passes(b128, np.arange(64) * 16), passes(b128, np.arange(64) * 256)
        (4, 64)
    """
    return int(_of_one(width, address, active).sum())


def conflicts(width: LdsWidth, address: Integers, active: Integers | None = None) -> int:
    """Return the passes beyond one a phase, which AMD's counters call bank conflicts.

    Example:
        >>> from cklang.emulator.clock.constants import constants_of
        >>> b64 = width_of(constants_of("gfx950"), "read", 8)
        >>> conflicts(b64, np.arange(64) * 256, np.array([0, 32]))
        0
        >>> conflicts(b64, np.arange(64) * 256, np.array([0, 31]))
        1
    """
    return int(np.maximum(_of_one(width, address, active) - 1, 0).sum())


def _of_one(width: LdsWidth, address: Integers, active: Integers | None) -> Integers:
    row = np.full(LANES, DISABLED, np.uint32)
    lanes = np.arange(LANES) if active is None else active
    row[lanes] = address[lanes]
    counts: Integers = pass_counts(width, row[None])[0]
    return counts


def pass_counts(width: LdsWidth, address: npt.NDArray[np.uint32]) -> Integers:
    """Return the passes of each phase of many instructions, [instruction, phase].

    A lane at an address that is no multiple of its width conflicts with none (gfx950's counter).

    Args:
        width: How their accesses are served.
        address: In bytes, of each lane; ``DISABLED`` where it takes no part, [instruction, lane].
    """
    phase = phase_of_lane(width).astype(np.int32)
    return lds_passes(address, phase, width.banks, max(1, width.bytes // _WORD))


@dataclass(frozen=True, slots=True)
class LdsTables:
    """How the instructions of a listing access the LDS, for ``addresses.cpp``."""

    lines: Words
    """``Line``: [line, (number in ``widths``, whether it reads, cycles)], -1 for all others."""
    widths: Words
    """``Width``: [width, (banks, words, lanes, phases, the phase of each lane)]."""


def lds_tables(
    constants: ClockConstants, ops: Sequence[str], unit: Words, busy: Words
) -> LdsTables:
    """Return how the instructions of a listing access the LDS.

    Args:
        constants: Of the GPU.
        ops: The operation of each line.
        unit: Of each line, an index of ``UNITS``.
        busy: Cycles of the unit without conflicts, [line].
    """
    lines = np.full((len(ops), 3), -1, np.int32)
    widths: dict[tuple[int, ...], int] = {}
    for line in np.flatnonzero(unit == UNITS.index("lds")).tolist():
        direction = "write" if re.match(r"ds_(write|store)", ops[line]) else "read"
        width = width_of(constants, direction, lane_bytes(ops[line]))
        phase = phase_of_lane(width)
        words = max(1, width.bytes // _WORD)
        row = (width.banks, words, width.lanes, int(phase.max()) + 1, *phase.tolist())
        reads = bool(re.match(r"ds_(read|load)", ops[line]))
        lines[line] = widths.setdefault(row, len(widths)), reads, busy[line]
    return LdsTables(lines, np.array(list(widths), np.int32).reshape(-1, 4 + LANES))
