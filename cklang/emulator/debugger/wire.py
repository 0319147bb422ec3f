# SPDX-License-Identifier: MIT
"""What the emulator is asked about a launch under control (``src/debug/requests.cpp``)."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum, auto

import numpy as np
import numpy.typing as npt

from cklang.emulator.engine.recording import LANES, Reader, RecordedLaunch, launch_facts

ANY = (1 << 64) - 1
"""Any workgroup, wave or lane."""

Ask = Callable[[bytes], bytes]
"""Sends a request and returns the answer."""

Words = npt.NDArray[np.uint32]
_ARGUMENTS = 5
_SCALARS = 128


class Request(IntEnum):
    """The kinds of requests, in the order of the C++."""

    RELEASE = 0
    LAUNCH = auto()
    BREAKPOINTS = auto()
    LINES = auto()
    RUN = auto()
    WHERE = auto()
    WAVES = auto()
    SCALARS = auto()
    ROWS = auto()
    LOCAL = auto()
    SCRATCH = auto()
    MEMORY = auto()
    ALLOCATIONS = auto()
    INTERRUPT = auto()


class Until(IntEnum):
    """Until when a launch runs."""

    BREAKPOINT = 0
    COUNT = auto()
    LINE = auto()
    LINE_BEFORE = auto()
    BREAKPOINT_BEFORE = auto()
    STEP = auto()
    END = auto()


class Reason(Enum):
    """Why a launch has stopped."""

    START = 1
    BREAKPOINT = 2
    STEP = 3
    INTERRUPT = 4
    WAVE_ENDED = 5
    ENDED = 6
    FAULT = 7
    STUCK = 8


class Where(IntEnum):
    """What a breakpoint is about."""

    CODE = 0
    LINE = auto()
    WRITE = auto()
    ACCESS = auto()


@dataclass(frozen=True, slots=True)
class Goal:
    """Until when a launch runs, and which wave that is about."""

    until: Until
    group: int = 0
    wave: int = 0
    count: int = 0


@dataclass(frozen=True, slots=True)
class StopAt:
    """A breakpoint as the emulator knows it: dwords, line numbers or addresses from ``begin``."""

    number: int
    where: Where
    begin: int
    end: int = 0
    group: int = ANY
    wave: int = ANY
    lane: int = ANY

    def packed(self) -> bytes:
        """Return the bytes of the C struct."""
        ends = (self.number, self.where, self.begin, self.end)
        return struct.pack("<7Q", *ends, self.group, self.wave, self.lane)


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a launch has stopped."""

    reason: Reason
    breakpoint: int
    step: int
    """Instructions that all waves together have executed."""
    group: int | None
    wave: int | None
    """The wave whose turn it is; None if there is none."""
    message: str
    """The fault's message."""


@dataclass(frozen=True, slots=True)
class WaveState:
    """A wave that has begun, and whose workgroup has not ended."""

    group: int
    wave: int
    state: str
    """``ready``, ``barrier`` or ``ended``."""
    dword: int
    """The next instruction, in dwords from the start of the code."""
    executed: int
    exec: int
    vcc: int
    scc: int
    mode: int


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a kernel."""

    offset: int
    size: int
    kind: str


@dataclass(frozen=True, slots=True)
class Allocation:
    """Memory that the program has allocated by HIP."""

    address: int
    size: int
    device: int
    number: int


_STATES = ("ready", "barrier", "ended")


def request_bytes(kind: Request, *arguments: int, array: bytes = b"") -> bytes:
    """Return a request as bytes.

    Example:
        >>> len(request_bytes(Request.WAVES)), len(request_bytes(Request.LINES, array=bytes(8)))
        (48, 56)
    """
    words = [kind, *arguments, *[0] * (_ARGUMENTS - len(arguments))]
    return struct.pack(f"<{1 + _ARGUMENTS}Q", *words) + array


class ControlledLaunch:
    """A launch that waits for what a debugger asks of it."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        reader = self._read(Request.LAUNCH)
        self.facts: RecordedLaunch = launch_facts(reader)
        self.code_address = reader.number()
        self.entry = reader.number()
        """The dword of the kernel's first instruction."""
        self.first_agpr = reader.number()
        """The row of the first accumulation register."""
        self.kernarg = reader.number()
        self.arguments = tuple(
            Argument(reader.number(), reader.number(), reader.text())
            for _ in range(reader.number())
        )

    def _read(self, kind: Request, *arguments: int, array: bytes = b"") -> Reader:
        return Reader(self._ask(request_bytes(kind, *arguments, array=array)))

    def _bytes(self, kind: Request, *arguments: int) -> bytes:
        return self._ask(request_bytes(kind, *arguments))

    def release(self) -> None:
        """Let the launch go on to its end."""
        self._bytes(Request.RELEASE)

    def set_breakpoints(self, stops: list[StopAt]) -> None:
        """Stop at these, and no others."""
        self._read(Request.BREAKPOINTS, array=b"".join(stop.packed() for stop in stops))

    def set_lines(self, lines: Words) -> None:
        """Say which line each dword of the code is of, by its number; 0 is none."""
        self._read(Request.LINES, array=lines.astype(np.uint32).tobytes())

    def run(self, goal: Goal) -> Stop:
        """Run, forward or back."""
        asked = (goal.until, goal.group, goal.wave, goal.count)
        return _stop(self._read(Request.RUN, *asked))

    def where(self) -> Stop:
        """Return where it has stopped."""
        return _stop(self._read(Request.WHERE))

    def waves(self) -> list[WaveState]:
        """Return the waves that have begun, by workgroup."""
        reader = self._read(Request.WAVES)
        reader.number()  # of workgroups that have begun
        return [_wave(reader.numbers(9)) for _ in range(reader.number())]

    def scalars(self, group: int, wave: int) -> Words:
        """Return the scalar registers, vcc at 106, m0 at 124 and exec at 126 among them."""
        return np.frombuffer(self._bytes(Request.SCALARS, group, wave), np.uint32)

    def rows(self, group: int, wave: int, first: int, count: int) -> Words:
        """Return vector registers, [register, lane]; fewer where the wave has no more."""
        data = self._bytes(Request.ROWS, group, wave, first, count)
        return np.frombuffer(data, np.uint32).reshape(-1, LANES)

    def local(self, group: int, offset: int, size: int) -> bytes:
        """Return bytes of the LDS of a workgroup, as far as it has them."""
        return self._bytes(Request.LOCAL, group, offset, size)

    def scratch(self, group: int, wave: int, lane: int, offset: int, size: int) -> bytes:
        """Return bytes of the private memory of a lane, as far as it has them."""
        return self._bytes(Request.SCRATCH, group, wave, lane, offset, size)

    def memory(self, address: int, size: int) -> bytes:
        """Return bytes of global memory, up to the first that is not there."""
        return self._bytes(Request.MEMORY, address, size)

    def allocations(self) -> list[Allocation]:
        """Return what the program has allocated, by address."""
        reader = self._read(Request.ALLOCATIONS)
        return [Allocation(*reader.numbers(4)) for _ in range(reader.number())]


def _stop(reader: Reader) -> Stop:
    reason, number, step, group, wave = reader.numbers(5)
    none = wave == ANY
    return Stop(
        Reason(reason), number, step, None if none else group, None if none else wave, reader.text()
    )


def _wave(numbers: list[int]) -> WaveState:
    group, wave, state, *rest = numbers
    return WaveState(group, wave, _STATES[state], *rest)
