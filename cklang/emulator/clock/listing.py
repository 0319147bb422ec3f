# SPDX-License-Identifier: MIT
"""The instructions of a recorded launch's code, from the disassembler's text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cklang.emulator.clock.instruction import Instruction
from cklang.emulator.engine.library import disassemble
from cklang.emulator.engine.recording import RecordedLaunch
from cklang.forks import cached_property
from cklang.memo import BoundedMemo

_WORD = 4
_REGISTER = re.compile(
    r"\b(?:(?:ttmp|[vsa])(?:\d+|\[\d+:\d+\])|(?:vcc|exec)(?:_lo|_hi)?|m0|scc)(?![\w(])"
)
_REMARKED = re.compile(r"s_wait|s_nop|s_setprio|s_sleep")
_FORMATS = re.compile(r"\b(?:cbsz|blgp):\d+")


def instruction_of(text: str, address: int = 0) -> Instruction:
    """Return an instruction from its assembly text.

    Example:
        >>> instruction_of("ds_read_b64 v[2:3], v4 offset:16").registers
        ('v[2:3]', 'v4')
        >>> instruction_of("s_waitcnt vmcnt(0)").remark
        'vmcnt(0)'
    """
    op, _, rest = text.strip().partition(" ")
    remark = rest.strip() if _REMARKED.match(op) else " ".join(_FORMATS.findall(rest))
    return Instruction(op, tuple(_REGISTER.findall(rest)), remark, address)


@dataclass(frozen=True)
class CodeListing:
    """The instructions of a code object's text section."""

    texts: Sequence[str]
    instructions: Sequence[Instruction]
    line_of: npt.NDArray[np.int32]
    """The line of each dword of the code; -1 inside of an instruction."""

    @cached_property
    def ops(self) -> tuple[str, ...]:
        """The operations of its instructions, each once."""
        return tuple(dict.fromkeys(instruction.op for instruction in self.instructions))

    @cached_property
    def addresses(self) -> npt.NDArray[np.int64]:
        """Where each instruction is in the text section, in bytes, [line]."""
        return np.array([instruction.address for instruction in self.instructions], np.int64)

    @cached_property
    def op_of(self) -> npt.NDArray[np.int64]:
        """The operation of each line, an index of ``ops``."""
        number = {op: at for at, op in enumerate(self.ops)}
        return np.array([number[instruction.op] for instruction in self.instructions], np.int64)


def listing_of(launch: RecordedLaunch, gpu: str) -> CodeListing:
    """Return the instructions of a launch's text section; those of the last few are kept.

    Decoding ends at the fill between two kernels; it goes on at the next instruction that this
    launch, or one before it, executed.
    """
    key = (gpu, launch.code)
    known = _LISTINGS.get(key)
    begins = reached(launch)
    if known is not None and not (begins & (known.line_of < 0)).any():
        return known
    if known is not None:
        begins |= known.line_of >= 0
    fresh = _read_listing(launch.code, gpu, begins)
    _LISTINGS.put(key, fresh)
    return fresh


def reached(launch: RecordedLaunch) -> npt.NDArray[np.bool_]:
    """Return which dwords of the code begin an instruction that was executed."""
    begins = np.zeros(len(launch.code) // _WORD, dtype=bool)
    begins[: len(launch.executed)] = launch.executed[: len(begins)] > 0
    if not begins.any():
        for wave in launch.waves:
            begins[wave.slots] = True
    return begins


def _read_listing(code: bytes, gpu: str, begins: npt.NDArray[np.bool_]) -> CodeListing:
    texts: dict[int, str] = {}
    left = begins.copy()
    left[:1] = True
    while left.any():
        begin = int(left.argmax())
        for row in disassemble(gpu, code[begin * _WORD :]).splitlines():
            offset, _, text = row.partition(":")
            place = begin + int(offset, 16) // _WORD
            if place < len(left):
                texts[place] = text.strip()
                left[place] = False
        left[begin] = False
    places = sorted(texts)
    line_of = np.full(len(left), -1, np.int32)
    line_of[places] = np.arange(len(places))
    return CodeListing(
        tuple(texts[place] for place in places),
        tuple(instruction_of(texts[place], place * _WORD) for place in places),
        line_of,
    )


_LISTINGS: BoundedMemo[tuple[str, bytes], CodeListing] = BoundedMemo(8)
