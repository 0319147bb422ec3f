# SPDX-License-Identifier: MIT
"""What waves execute on the emulated GPU: the streams of instructions that the clock times."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from cklang import knobs
from cklang.emulator.engine.library import load, packed_records
from cklang.errors import error
from cklang.forks import cached_property
from cklang.memo import BoundedMemo

LANES = 64
MEMORY_LINE = 128
"""Bytes in a line of the caches in front of memory."""
DISABLED = 0xFFFFFFFF
"""The address of a lane that takes no part."""
SEGMENT_BYTES = 64
"""Addresses of global memory are recorded in pieces of so many bytes."""
_ALIGNED = 8
"""Texts and arrays in a recording take a multiple of this many bytes."""
LANE_PIECE = np.dtype(
    [("access", "u4"), ("lane", "u4"), ("at", "u8"), ("bytes", "u4"), ("skip", "u4")]
)
"""``LaneRecord`` of ``checks/recording.h``: the number of an access, the lane, its address, how
many bytes, and how many bytes of the lane's registers come before them."""
Bytes = npt.NDArray[np.uint8]
Buffer = bytes | memoryview | Bytes
Words = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.uint64]
LanePieces = npt.NDArray[np.void]


@dataclass(frozen=True)
class RecordedWave:
    """What one wave executed: stretches of instructions, one after the other.

    Example:
        >>> words, twice = (lambda *row: np.array(row, np.uint32)), np.array([64, 64], np.uint8)
        >>> none = words()
        >>> wave = RecordedWave(
        ...     0, 0, stretches=words(1, 0), enabled=twice, begins=words(0, 2),
        ...     slots=words(0, 1, 8), lds=none, patterns=none, memory=none,
        ...     segments=none.astype(np.uint64))
        >>> wave.line.tolist(), wave.slot_at(words(0, 2)).tolist()
        ([8, 0, 1], [8, 1])
    """

    workgroup: int
    wave: int
    """Its number in the workgroup."""
    stretches: Words
    """Numbers of the stretches that it executed, [execution]."""
    enabled: npt.NDArray[np.uint8]
    """Lanes that take part, [execution]."""
    begins: Words
    """The first instruction of each stretch, an index of ``slots``, [stretch]."""
    slots: Words
    """Dwords from the start of the code of the instructions of all stretches."""
    lds: Words
    """LDS operations that have addresses: their pattern, and how many bytes further on they are,
    [operation, (pattern, shift)]."""
    patterns: Words
    """Byte addresses of lanes; ``DISABLED`` for those that take no part, [pattern, lane]."""
    memory: Words
    """Accesses to global memory, [access, (place among the executed instructions, bytes,
    segments)]."""
    segments: Counts
    """Addresses of the segments of all accesses, one after the other, over ``SEGMENT_BYTES``."""
    shown: LanePieces = field(default_factory=lambda: np.zeros(0, LANE_PIECE))
    """What each lane accesses, of the first execution of each instruction of global memory."""

    @cached_property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Instructions of each stretch, [stretch]."""
        return np.diff(self.begins, append=len(self.slots)).astype(np.int64)

    @cached_property
    def starts(self) -> npt.NDArray[np.int64]:
        """The place of each executed stretch's first instruction, [execution]."""
        lengths = self.lengths[self.stretches]
        return np.cumsum(lengths) - lengths

    @cached_property
    def executed(self) -> int:
        """Instructions."""
        return int(self.lengths[self.stretches].sum())

    @cached_property
    def line(self) -> Words:
        """Dwords from the start of the code, of each executed instruction, [instruction]."""
        lengths = self.lengths[self.stretches]
        within = np.arange(self.executed) - np.repeat(self.starts, lengths)
        line: Words = self.slots[np.repeat(self.begins[self.stretches], lengths) + within]
        return line

    @cached_property
    def lanes(self) -> npt.NDArray[np.uint8]:
        """Enabled lanes, [instruction]."""
        return np.repeat(self.enabled, self.lengths[self.stretches])

    @property
    def first_slots(self) -> Words:
        """Dwords from the start of the code of each executed stretch's first instruction.

        An instruction that accesses memory is a stretch of its own.
        """
        return self.slots[self.begins][self.stretches]

    def slot_at(self, place: npt.NDArray[np.integer]) -> Words:
        """Return the dwords from the start of the code of some executed instructions."""
        run = np.searchsorted(self.starts, place, side="right") - 1
        slots: Words = self.slots[self.begins[self.stretches[run]] + (place - self.starts[run])]
        return slots

    def sums(self, weights: npt.NDArray[np.generic] | None = None) -> npt.NDArray[np.float64]:
        """Return how often each instruction of ``slots`` was executed, or the sum of weights.

        Args:
            weights: Of each execution of a stretch, [execution].
        """
        sums = np.bincount(self.stretches, weights, len(self.begins))
        return np.repeat(sums, self.lengths)

    @property
    def lds_address(self) -> Words:
        """Byte addresses of each LDS operation, as those of patterns, [operation, lane]."""
        return shifted(self.patterns[self.lds[:, 0]], self.lds[:, 1])


def shifted(address: Words, shift: Words) -> Words:
    """Return addresses of lanes so many bytes further on; lanes that take no part still take none.

    Args:
        address: [operation, lane].
        shift: [operation].

    Example:
        >>> shifted(np.array([[8, DISABLED]], np.uint32), np.array([4], np.uint32)).tolist()
        [[12, 4294967295]]
    """
    return np.where(address == DISABLED, address, address + shift[:, None])


class PackedWaves(Sequence[RecordedWave]):
    """The recorded waves of a launch, read when one is asked for.

    Example:
        >>> list(PackedWaves(np.zeros(0, np.uint8), 0))
        []
    """

    def __init__(self, packed: npt.NDArray[np.uint8], count: int) -> None:
        self.packed = packed
        """As ``packed_records`` of ``checks/recording.cpp`` writes them."""
        self._count = count

    @cached_property
    def _waves(self) -> tuple[RecordedWave, ...]:
        reader = Reader(self.packed)
        return tuple(_wave(reader) for _ in range(self._count))

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> RecordedWave: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[RecordedWave, ...]: ...
    def __getitem__(self, at: int | slice) -> RecordedWave | tuple[RecordedWave, ...]:
        return self._waves[at]


@dataclass(frozen=True, slots=True)
class RecordedLaunch:
    """A launch with some recorded workgroups."""

    kernel: str
    gpu: str
    code: bytes
    """The text section of the code object."""
    groups: tuple[int, int, int]
    block: tuple[int, int, int]
    lds_bytes: int
    vgprs: int
    """Vector registers of a wave, with the accumulation registers."""
    sgprs: int
    scratch_bytes: int
    """Private memory of a lane."""
    lanes: int
    resident: int
    """Workgroups that the whole GPU holds at a time."""
    bytes_loaded: int
    """Bytes that all lanes of the launch load from global memory."""
    bytes_stored: int
    executed: Counts
    """How often waves of the whole launch executed the instruction at each dword of the code."""
    files: tuple[str, ...]
    sources: Words
    """The line table of the code, [row, (first dword, end, file, line)]."""
    waves: PackedWaves
    base: int = 0
    """The address at which debug information has the code."""
    debug: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Sections of the code object with its debug information, by name."""
    extents: Counts = field(default_factory=lambda: np.zeros((0, 2), np.uint64))
    """Memory that the recorded waves accessed some of: allocations, code and the arguments, in the
    order of their addresses, [extent, (begin, end)]."""
    pointers: Counts = field(default_factory=lambda: np.zeros(0, np.uint64))
    """Addresses in such memory among the arguments: where arrays begin."""

    @property
    def memory_bytes(self) -> int:
        """Bytes of the lines of global memory that the recorded waves accessed, each once.

        It is what caches as large as the operands would leave for memory to move.
        """
        lines = [wave.segments * SEGMENT_BYTES // MEMORY_LINE for wave in self.waves]
        return MEMORY_LINE * len(np.unique(np.concatenate(lines))) if lines else 0


@dataclass(slots=True)
class Recording:
    """The launches inside of ``timing``; filled when the ``with`` statement ends."""

    launches: tuple[RecordedLaunch, ...] = field(default=())


@contextmanager
def timing(workgroups: int = 1, *, alone: bool = False) -> Iterator[Recording]:
    """Record what some workgroups of each launch on emulated GPUs execute.

    Args:
        workgroups: How many of each launch, evenly spaced over its grid.
        alone: Run these workgroups only. A large launch then takes the time of a few workgroups,
            but its results are incomplete.

    Counts of instructions and bytes are those of all workgroups, those of ``alone`` scaled up.
    Launches inside must have ended when the ``with`` statement does. Host arrays that they take are
    copied, so that they begin with a cache line, as memory of a GPU does.

    Raises:
        CkValueError: A131, launches are being recorded already.
    """
    if is_recording():
        raise error("A131")
    library = load()
    library.ckemu_record(workgroups, int(alone))
    recording = Recording()
    knobs.RECORDINGS_NOW.append(recording)
    try:
        yield recording
        launches = recorded_launches(packed_records())
        recording.launches = (
            tuple(_scaled(launch, workgroups) for launch in launches) if alone else launches
        )
    finally:
        knobs.RECORDINGS_NOW.pop()
        library.ckemu_record(0, 0)


def _scaled(launch: RecordedLaunch, workgroups: int) -> RecordedLaunch:
    """Return a launch with the counts of all its workgroups, where only some have run."""
    total = prod(launch.groups)
    factor = total / min(workgroups, total)
    return replace(
        launch,
        bytes_loaded=round(launch.bytes_loaded * factor),
        bytes_stored=round(launch.bytes_stored * factor),
        executed=np.rint(launch.executed * factor).astype(np.uint64),
    )


def is_recording() -> bool:
    """Return whether a ``timing`` is under way in this process."""
    return any(isinstance(owner, Recording) for owner in knobs.RECORDINGS_NOW)


class Reader:
    """Numbers, texts and arrays one after the other, as ``core/packer.h`` writes them."""

    def __init__(self, data: Buffer) -> None:
        self._data, self._at = data, 0

    def number(self) -> int:
        """Read a number of 8 bytes."""
        return int(self.array(np.uint64, 1)[0])

    def numbers(self, count: int) -> list[int]:
        """Read some."""
        return [self.number() for _ in range(count)]

    def text(self) -> str:
        """Read a text behind its length."""
        return self.raw().decode(errors="replace")

    def raw(self) -> bytes:
        """Read bytes behind their number."""
        return self.array(np.uint8).tobytes()

    def skip(self) -> npt.NDArray[np.uint8]:
        """Return bytes behind their number, as they are, without reading them."""
        return self.array(np.uint8).view(np.uint8)

    def array(self, dtype: type[np.generic], count: int | None = None) -> npt.NDArray[np.generic]:
        """Read values behind their number, if ``count`` does not say it."""
        size = self.number() if count is None else count
        values = np.frombuffer(self._data, dtype, size, self._at)
        self._at += -(-values.nbytes // _ALIGNED) * _ALIGNED
        return values


def recorded_launches(data: Buffer) -> tuple[RecordedLaunch, ...]:
    """Return the launches in the bytes of a recording.

    Example:
        >>> recorded_launches(bytes(16))
        ()
    """
    reader = Reader(data)
    codes = [_known_code(reader.skip()) for _ in range(reader.number())]
    return tuple(_launch(reader, codes) for _ in range(reader.number()))


_DEBUG_SECTIONS = (
    ".debug_info", ".debug_abbrev", ".debug_addr", ".debug_rnglists", ".debug_line",
    ".debug_line_str", ".debug_str", ".debug_str_offsets",
)  # fmt: skip
"""In the order of ``RecordedCode`` in ``checks/recording.h``."""


@dataclass(frozen=True, slots=True)
class _Code:
    """A code object, as ``pack_code`` of ``checks/recording.cpp`` writes it."""

    packed: npt.NDArray[np.uint8]
    code: bytes
    base: int
    files: tuple[str, ...]
    sources: Words
    debug: Mapping[str, bytes]


_CODES: BoundedMemo[int, _Code] = BoundedMemo(8)
"""The last few code objects, by the size of what is packed: launches of one have its very bytes."""


def _known_code(packed: npt.NDArray[np.uint8]) -> _Code:
    known = _CODES.get(len(packed))
    if known is None or not np.array_equal(known.packed, packed):
        known = _read_code(packed.copy())
        _CODES.put(len(packed), known)
    return known


def _read_code(packed: npt.NDArray[np.uint8]) -> _Code:
    reader = Reader(packed)
    return _Code(
        packed,
        code=reader.raw(),
        base=reader.number(),
        files=tuple(reader.text() for _ in range(reader.number())),
        sources=_rows(reader, 4),
        debug={name: reader.raw() for name in _DEBUG_SECTIONS},
    )


def _launch(reader: Reader, codes: Sequence[_Code]) -> RecordedLaunch:
    facts = _facts(reader)
    code = codes[reader.number()]
    count = reader.number()
    return _joined(facts, code, PackedWaves(reader.skip(), count))


def _joined(facts: dict[str, Any], code: _Code, waves: PackedWaves) -> RecordedLaunch:
    return RecordedLaunch(
        **facts,
        code=code.code,
        files=code.files,
        sources=code.sources,
        base=code.base,
        debug=code.debug,
        waves=waves,
    )


def _three(numbers: list[int]) -> tuple[int, int, int]:
    x, y, z = numbers
    return x, y, z


def launch_facts(reader: Reader) -> RecordedLaunch:
    """Read a launch without its waves, behind its code."""
    code = _read_code(reader.skip())
    return _joined(_facts(reader), code, PackedWaves(np.zeros(0, np.uint8), 0))


def _facts(reader: Reader) -> dict[str, Any]:
    return {
        "kernel": reader.text(),
        "gpu": reader.text(),
        "groups": _three(reader.numbers(3)),
        "block": _three(reader.numbers(3)),
        "lds_bytes": reader.number(),
        "vgprs": reader.number(),
        "sgprs": reader.number(),
        "scratch_bytes": reader.number(),
        "lanes": reader.number(),
        "resident": reader.number(),
        "bytes_loaded": reader.number(),
        "bytes_stored": reader.number(),
        "executed": _counts(reader),
        "extents": _counts(reader, 2).reshape(-1, 2),
        "pointers": _counts(reader),
    }


def _counts(reader: Reader, columns: int = 1) -> Counts:
    return reader.array(np.uint64, columns * reader.number()).astype(np.uint64, copy=False)


def _words(reader: Reader) -> Words:
    return reader.array(np.uint32).astype(np.uint32, copy=False)


def _rows(reader: Reader, columns: int) -> Words:
    """Structs of so many words; an array of them begins with how many there are."""
    count = reader.number()
    return (
        reader.array(np.uint32, count * columns).astype(np.uint32, copy=False).reshape(-1, columns)
    )


def _wave(reader: Reader) -> RecordedWave:
    return RecordedWave(
        workgroup=reader.number(),
        wave=reader.number(),
        stretches=_words(reader),
        enabled=reader.array(np.uint8).astype(np.uint8, copy=False),
        begins=_words(reader),
        slots=_words(reader),
        lds=_rows(reader, 2),
        patterns=_words(reader).reshape(-1, LANES),
        memory=_rows(reader, 3),
        segments=_counts(reader),
        shown=_pieces(reader),
    )


def _pieces(reader: Reader) -> LanePieces:
    words = reader.array(np.uint64, LANE_PIECE.itemsize // _ALIGNED * reader.number())
    return words.view(LANE_PIECE)
