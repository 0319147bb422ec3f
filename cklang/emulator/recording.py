# SPDX-License-Identifier: MIT
"""What waves execute on the emulated GPU: the streams of instructions that the clock times."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from cklang.emulator.library import load

__all__ = ["MEMORY_LINE", "RecordedLaunch", "RecordedWave", "Recording", "timing"]

LANES = 64
MEMORY_LINE = 128
"""Bytes of a line of the caches before memory."""
DISABLED = 0xFFFFFFFF
"""The address of a lane that takes no part."""
Words = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class RecordedWave:
    """What one wave executed."""

    workgroup: int
    wave: int
    """Its number in the workgroup."""
    line: Words
    """Dwords from the start of the code, of each executed instruction, [instruction]."""
    lds_address: Words
    """Byte addresses of each LDS operation that has some; ``DISABLED`` for lanes that take no part,
    [operation, lane]."""
    memory: npt.NDArray[np.uint64]
    """Lines of global memory that it accessed, address / ``MEMORY_LINE``, in order: no two alike
    in a row."""


@dataclass(frozen=True, slots=True)
class RecordedLaunch:
    """A launch of which some workgroups were recorded."""

    kernel: str
    code: bytes
    """The text section of the code object."""
    groups: tuple[int, int, int]
    block: tuple[int, int, int]
    lds_bytes: int
    vgprs: int
    """Vector registers of a wave, with the accumulation registers."""
    lanes: int
    resident: int
    """Workgroups that the whole GPU holds at a time."""
    waves: tuple[RecordedWave, ...]

    @property
    def memory_bytes(self) -> int:
        """Bytes of the lines of global memory that the recorded waves accessed, each once.

        It is what caches as large as the operands would leave for memory to move.
        """
        lines = [wave.memory for wave in self.waves]
        return MEMORY_LINE * len(np.unique(np.concatenate(lines))) if lines else 0


@dataclass(slots=True)
class Recording:
    """The launches inside of ``timing``; filled when the ``with`` statement ends."""

    launches: tuple[RecordedLaunch, ...] = field(default=())


class _Launch(ctypes.Structure):
    _fields_ = (
        ("kernel", ctypes.c_char_p),
        ("code", ctypes.c_void_p),
        ("code_bytes", ctypes.c_uint64),
        ("groups", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("lds_bytes", ctypes.c_uint32),
        ("vgprs", ctypes.c_uint32),
        ("lanes", ctypes.c_uint32),
        ("resident", ctypes.c_uint32),
        ("waves", ctypes.c_uint32),
    )


class _Wave(ctypes.Structure):
    _fields_ = (
        ("workgroup", ctypes.c_uint64),
        ("wave", ctypes.c_uint32),
        ("instructions", ctypes.c_uint64),
        ("addresses", ctypes.c_uint64),
        ("accesses", ctypes.c_uint64),
        ("line", ctypes.c_void_p),
        ("address", ctypes.c_void_p),
        ("memory", ctypes.c_void_p),
    )


@contextmanager
def timing(workgroups: int = 1, *, alone: bool = False) -> Iterator[Recording]:
    """Record what some workgroups of each launch on emulated GPUs execute.

    Args:
        workgroups: How many of each launch, evenly spaced over its grid.
        alone: Run these workgroups only. A large launch then takes the time of a few workgroups,
            but its results are incomplete.

    Launches inside must have ended when the ``with`` statement does; they run in the interpreter.
    """
    library = load()
    library.ckemu_record(workgroups, int(alone))
    recording = Recording()
    try:
        yield recording
        recording.launches = tuple(_launch(number) for number in range(library.ckemu_recorded()))
    finally:
        library.ckemu_record(0, 0)


def _launch(number: int) -> RecordedLaunch:
    raw = _Launch()
    load().ckemu_get_launch_record(number, ctypes.byref(raw))
    return RecordedLaunch(
        kernel=(raw.kernel or b"").decode(),
        code=ctypes.string_at(raw.code, raw.code_bytes),
        groups=tuple(raw.groups),
        block=tuple(raw.block),
        lds_bytes=raw.lds_bytes,
        vgprs=raw.vgprs,
        lanes=raw.lanes,
        resident=raw.resident,
        waves=tuple(_wave(number, wave) for wave in range(raw.waves)),
    )


def _wave(number: int, wave: int) -> RecordedWave:
    raw = _Wave()
    load().ckemu_get_wave_record(number, wave, ctypes.byref(raw))
    line = np.frombuffer(ctypes.string_at(raw.line, 4 * raw.instructions), np.uint32)
    address = np.frombuffer(ctypes.string_at(raw.address, 4 * raw.addresses), np.uint32)
    memory = np.frombuffer(ctypes.string_at(raw.memory, 8 * raw.accesses), np.uint64)
    return RecordedWave(raw.workgroup, raw.wave, line, address.reshape(-1, LANES), memory)
