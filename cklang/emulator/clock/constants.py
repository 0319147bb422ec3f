# SPDX-License-Identifier: MIT
"""The numbers of the clock, by GPU: the loader of ``arch_specs/timing/*.json``.

Each number stands with its source, which begins with ``measured``, ``published``, ``manual``,
``fitted``, ``chosen`` or ``assumed``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from cklang.arch import all_archs, timing_file
from cklang.errors import error

SOURCES = ("measured", "published", "manual", "fitted", "chosen", "assumed")
"""The first word of each source."""

SLOTS = ("light", "plain", "wide")
"""What vector instructions of two waves take of an issue slot that they may share: beside a light
one of the older wave any of these, beside a plain one a light or a plain one, beside a wide one
none. Others take the whole slot (``whole``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number of the model, with where it comes from."""

    value: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRates:
    """Multiply-adds a cycle of one SIMD's matrix unit, by the type of A."""

    dense: Mapping[str, int]
    blocks: Mapping[str, int]
    """Cycles of instructions of several blocks."""
    long: Mapping[str, int]
    """Cycles of instructions that take more than ``long_bytes`` bytes of A from each lane."""
    long_bytes: int
    least: int
    """Cycles of the shortest instruction."""
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LdsWidth:
    """How the LDS serves accesses of so many bytes a lane."""

    direction: str
    bytes: int
    banks: int
    phases: str
    """The rule by which lanes are served together: a name of ``clock.lds.PHASES``."""
    lanes: int
    """Lanes that are served together."""
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRow:
    """Operations that one unit executes alike."""

    pattern: str
    """A regular expression that the operation's name matches from its beginning."""
    unit: str
    issue: int
    """Cycles until the wave may go on."""
    busy: int
    """Cycles of the unit; 0: computed from shape, width or addresses."""
    latency: int
    """Cycles until the result may be read; 0: computed."""
    source: str
    slot: str = "whole"
    """What a vector instruction takes of an issue slot: a name of ``SLOTS``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interlock:
    """How long an operation of one unit waits for the result of another.

    Two units without a row need no time beside the producer's latency, or wait for a counter.
    """

    producer: str
    consumer: str
    cycles: int
    """From the producer's issue to the consumer's; with ``after_result``, beside its latency."""
    after_result: bool
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelRates:
    """Bytes a cycle that a chiplet of a board gets from a level of memory behind its L2."""

    board: str
    level: str
    """``last_level`` or ``memory``."""
    read: float
    write: float
    mixed: float | None
    """The rate of equal reads and writes; None if it is not known: mixes count as reads."""
    source: str

    def cycles(self, written: float) -> float:
        """Return the cycles of a byte, where a share of all bytes is written.

        A request that follows one of the other direction costs more or less than one that follows
        its like; of requests in no order, twice ``written * (1 - written)`` do.

        Example:
            >>> level = LevelRates(board="", level="", read=4, write=2, mixed=2, source="")
            >>> [level.cycles(share) for share in (0, 0.5, 1)]
            [0.25, 0.5, 0.5]
        """
        if self.mixed is None:
            return 1 / self.read
        apart = (1 - written) / self.read + written / self.write
        turning = 1 / self.mixed - (1 / self.read + 1 / self.write) / 2
        return apart + turning * 4 * written * (1 - written)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardPower:
    """What matrix instructions take of the power that a board of the GPU may draw."""

    board: str
    cost: Mapping[str, float]
    """For each kind of elements (a name of ``clock.matrix.KINDS``), how much longer a cycle is
    for each TFLOP/s that the matrix units would do at the highest clock, as a share."""
    free: float
    """How much of that the board bears at its highest clock."""
    error: float | None
    """Median relative error of times under load, held out; None if none were compared."""
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """What launches take on a board beside the time of their kernels, in µs between two events."""

    board: str
    launch_us: float
    """For each launch that follows another one on its stream."""
    call_us: float
    """Once for launches that follow each other."""
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockConstants:
    """All numbers of one GPU."""

    gpu: str
    numbers: Mapping[str, Number]
    matrix: MatrixRates
    lds: tuple[LdsWidth, ...]
    operations: tuple[OperationRow, ...]
    interlocks: tuple[Interlock, ...]
    boards: tuple[BoardPower, ...] = ()
    """The board that the GPU's spec describes first."""
    rates: Mapping[str, LevelRates] = field(default_factory=dict)
    """The chosen board's rates, by level; empty where they are not known."""
    overhead: Overhead | None = None
    """On the chosen board; None where it is not known."""

    def __getitem__(self, name: str) -> float:
        return self.numbers[name].value

    def cycles(self, name: str) -> int:
        """Return a number of cycles."""
        return round(self.numbers[name].value)

    def validated(self, *kinds: str) -> float | None:
        """Return the median error of the clock on the first of some kinds of kernels.

        It is that of the held-out comparison with GPUs; None if there is none.

        Args:
            kinds: ``products``, ``programs`` (kernels without matrix instructions) or ``error``
                (loops and issue times in instruction traces).
        """
        names = [f"validated_{kind}" for kind in kinds]
        return next((self[name] for name in names if name in self.numbers), None)

    def with_numbers(self, values: Mapping[str, float]) -> ClockConstants:
        """Return the constants with some numbers replaced, as fits need it."""
        numbers = dict(self.numbers)
        for name, value in values.items():
            numbers[name] = Number(value=value, source=numbers[name].source)
        return replace(self, numbers=numbers)

    def operation(self, name: str) -> OperationRow | None:
        """Return the first row whose pattern an operation matches; None if it has no cost."""
        return next((row for row in self.operations if re.match(row.pattern, name)), None)


def gpu_of_board(board: str) -> str:
    """Return the GPU of a board.

    Example:
        >>> gpu_of_board("MI355X")
        'gfx950'
    """
    known = {
        row["board"]: spec.name
        for spec in all_archs()
        if timing_file(spec.name).is_file()
        for rows in ("rates", "boards", "overheads")
        for row in json.loads(timing_file(spec.name).read_text("utf-8")).get(rows, ())
    }
    if board not in known:
        raise error("K050", what="board", name=board, known=", ".join(known))
    return known[board]


@cache
def constants_of(gpu: str, board: str | None = None) -> ClockConstants:
    """Return the constants of a GPU.

    Args:
        gpu: The LLVM target.
        board: With the GPU, which says what memory does; by default the one that the GPU's spec
            describes. So is one with known power alone.

    Example:
        >>> constants_of("gfx942").cycles("turn")
        4
        >>> [constants_of("gfx942", board).rates["memory"].board for board in (None, "MI300A")]
        ['MI300X', 'MI300A']
    """
    path = timing_file(gpu)
    if not path.is_file():
        known = [spec.name for spec in all_archs() if timing_file(spec.name).is_file()]
        raise error("K050", what="constants", name=gpu, known=", ".join(known))
    data = json.loads(path.read_text(encoding="utf-8"))
    rates = [LevelRates(**row) for row in data.get("rates", ())]
    boards = tuple(BoardPower(**row) for row in data.get("boards", ()))
    overheads = [Overhead(**row) for row in data.get("overheads", ())]
    boards_known = dict.fromkeys([*(row.board for row in rates), *(row.board for row in boards)])
    if board is not None and board not in boards_known:
        names = ", ".join(boards_known) or "none"
        raise error("K050", what="rates or power", name=board, known=names)
    of_board = [row for row in rates if row.board == board]
    default = [row for row in rates if row.board == rates[0].board]
    return ClockConstants(
        gpu=data["gpu"],
        numbers={name: Number(**row) for name, row in data["numbers"].items()},
        matrix=MatrixRates(**data["matrix"]),
        lds=tuple(LdsWidth(**row) for row in data["lds"]),
        operations=tuple(OperationRow(**row) for row in data["operations"]),
        interlocks=tuple(Interlock(**row) for row in data["interlocks"]),
        boards=boards,
        rates={row.level: row for row in of_board or default},
        overhead=next((row for row in overheads if board in (None, row.board)), None),
    )
