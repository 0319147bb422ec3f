# SPDX-License-Identifier: MIT
"""The mistakes that ``sanitizer_study.py`` plants, and which memory a kernel accesses with them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cklang import emulator
from cklang.emulator.engine.library import text_section
from cklang.emulator.engine.recording import DISABLED, RecordedLaunch, RecordedWave

MOST_WORKGROUPS = 1 << 20
"""More than any launch has: all of its workgroups."""

_NOP = 0xBF800000
_EXEC = 126
"""The number of the mask of lanes among the operands."""

_COUNTERS = {
    0xBF8C: ((0, 4), (8, 4)),  # s_waitcnt of CDNA: vmcnt's lower bits, lgkmcnt
    0xBF89: ((10, 6), (4, 6)),  # and of gfx11
    0xBFC0: ((0, 6),),  # s_wait_loadcnt
    0xBFC6: ((0, 6),),  # s_wait_dscnt
    0xBFC7: ((0, 5),),  # s_wait_kmcnt
}
"""Where the counters of a wait are: first bit and bits. All ones wait for nothing."""


_ALWAYS = 7
"""Or-ed to the number of a comparison of integers, on GPUs that have it: always true."""


def _always(word: int) -> int:
    """Make a comparison always true."""
    return word | _ALWAYS << (17 if word >> 25 == 0x3E else 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """A kind of change to an instruction: which ones, and the word that it becomes."""

    name: str
    pattern: str
    change: Callable[[int], int]
    """From the first word of the instruction."""
    not_on: tuple[str, ...] = ()
    """GPUs without such an instruction."""
    kinds: tuple[str, str] = ("", "")
    """What to call mutants that make the same accesses as the original, and those that do not."""

    def row(self, same_accesses: bool) -> str:
        """The row of the table for a mutant."""
        return self.name + self.kinds[not same_accesses]

    @property
    def rows(self) -> list[str]:
        """The rows that its mutants may be in."""
        return list(dict.fromkeys(self.row(same) for same in (False, True)))


def _plus(bits: int, amount: int) -> Callable[[int], int]:
    """Add to the field of so many low bits, as far as it goes."""

    def change(word: int) -> int:
        mask = (1 << bits) - 1
        return word & ~mask | min((word & mask) + amount, mask)

    return change


def _one_more_in_flight(word: int) -> int:
    """Let one more operation be under way, of the first counter that the wait is for."""
    for low, bits in _COUNTERS.get(word >> 16, ()):
        if word >> low & (1 << bits) - 1 != (1 << bits) - 1:
            return word + (1 << low)
    return word


_BOUND_OR_VALUE = (" that chooses a value", " that guards an access")

MISTAKES = (
    Mistake(name="a wait removed", pattern=r"s_wait(cnt|_\w+cnt)\b", change=lambda _: _NOP),
    Mistake(name="a wait for one fewer",
            pattern=r"s_wait(cnt (vmcnt|lgkmcnt)\(\d+\)$|_(load|ds|km)cnt )",
            change=_one_more_in_flight),
    Mistake(name="a barrier removed", pattern=r"s_barrier", change=lambda _: _NOP),
    Mistake(name="an s_nop shortened", pattern=r"s_nop [1-9]", change=lambda _: _NOP),
    Mistake(name="a removed predicate", pattern=r"s_and_saveexec_b(32|64) s\d",
            change=lambda word: word & ~0xFF | _EXEC, kinds=_BOUND_OR_VALUE),
    Mistake(name="an always true comparison", pattern=r"v_cmp_(lt|le|gt|ge)_[iu](32|64)",
            change=_always, not_on=("gfx1201",), kinds=_BOUND_OR_VALUE),
    Mistake(name="an LDS address moved by a dword", pattern=r"ds_(read|write|load|store)_b",
            change=_plus(16, 4)),
    Mistake(name="a global address moved by a page", pattern=r"global_(load|store)_[bd]\w+ ",
            change=lambda word: word & ~0xFFF | (word + 0xFF0) & 0xFFF),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A kernel, its code, and a function that runs it and says whether its results are right."""

    gpu: str
    name: str
    code: bytes
    run: Callable[[bytes], str]
    """Run this code; "" if all is right, else what is wrong."""
    family: str
    """Which compiler or library it is of."""


Offsets = npt.NDArray[np.int64]


def _listing(kernel: Kernel) -> list[str]:
    return emulator.disassemble(kernel.gpu, kernel.code).splitlines()


def text_offset(code: bytes) -> int:
    """Where the instructions of an ELF file begin."""
    return code.index(text_section(code))


def _launches(kernel: Kernel, code: bytes) -> list[RecordedLaunch]:
    """What the kernel's run launches of this code, with all that its waves execute."""
    text = text_section(code)
    with emulator.timing(MOST_WORKGROUPS) as recording:
        kernel.run(code)
    return [launch for launch in recording.launches if launch.code == text]


def executed(kernel: Kernel) -> set[int]:
    """Offsets in the code of the instructions that the kernel executes in its run."""
    launches = _launches(kernel, kernel.code)
    return {4 * int(line) for launch in launches for wave in launch.waves for line in wave.line}


Accesses = list[tuple[object, ...]]
"""What waves access, in comparable form."""

_VECTOR = "global|buffer|tbuffer|flat|scratch"
_LOCAL = "ds_"
_EXCHANGES = "ds_b?permute|ds_swizzle"
"""Operations in the encoding of LDS that exchange values among lanes and access nothing."""


def accesses(kernel: Kernel, code: bytes) -> Accesses:
    """Return which accesses each wave makes under this code, in order: how many lanes and bytes.

    A bound or predicate decides that; where a lane accesses memory is left out, since sorted
    indices and the like are values that become addresses. So are scalar loads.
    """
    kinds = tuple(_places(kernel, pattern) for pattern in (_VECTOR, _LOCAL, _EXCHANGES))
    return [
        (number, *parts)
        for number, launch in enumerate(_launches(kernel, code))
        for parts in sorted(_of_wave(wave, *kinds) for wave in launch.waves)
    ]


def _places(kernel: Kernel, pattern: str) -> Offsets:
    """Dwords from the start of the code, of the instructions of a kind."""
    lines = (line.strip().split(": ", 1) for line in _listing(kernel))
    return np.array([int(at, 16) // 4 for at, text in lines if re.match(pattern, text.strip())])


def _of_wave(
    wave: RecordedWave, vector: Offsets, local: Offsets, exchanges: Offsets
) -> tuple[int, int, bytes, bytes, bytes]:
    memory = wave.memory[np.isin(wave.line[wave.memory[:, 0]], vector)]
    at = memory[:, 0]
    in_memory = np.stack([wave.line[at], wave.lanes[at], memory[:, 1]])
    lds = wave.line[np.isin(wave.line, local)]
    lanes = (wave.lds_address != DISABLED)[~np.isin(lds, exchanges)]
    places = lds[~np.isin(lds, exchanges)]
    return wave.workgroup, wave.wave, in_memory.tobytes(), places.tobytes(), lanes.tobytes()


def sites(kernel: Kernel, mistake: Mistake, ran: set[int]) -> list[int]:
    """Offsets in the file of the executed instructions that the mistake can change."""
    lines = _listing(kernel)
    base = text_offset(kernel.code)
    pairs = (line.strip().split(": ", 1) for line in lines)
    places = [int(at, 16) for at, text in pairs if re.match(mistake.pattern, text.strip())]
    return [base + at for at in places if at in ran]


def mutant(kernel: Kernel, mistake: Mistake, at: int) -> bytes:
    """The code with the instruction at that offset changed."""
    word = int.from_bytes(kernel.code[at : at + 4], "little")
    changed = mistake.change(word).to_bytes(4, "little")
    return kernel.code[:at] + changed + kernel.code[at + 4 :]


def described(kernel: Kernel, at: int) -> str:
    """The instruction at that offset and the two behind it."""
    lines = _listing(kernel)
    offsets = [int(line.strip().partition(":")[0], 16) for line in lines]
    first = offsets.index(at - text_offset(kernel.code))
    return "; ".join(line.strip() for line in lines[first : first + 3])
