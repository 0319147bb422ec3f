# SPDX-License-Identifier: MIT
"""From the text of an instruction to what the model of the compute unit needs to know of it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from cklang.arch import arch
from cklang.emulator.clock.constants import SLOTS, ClockConstants, OperationRow
from cklang.emulator.clock.matrix import matrix_cycles, matrix_shape
from cklang.emulator.clock.native import COUNTERS, RANGES, UNITS, COp


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a listing."""

    op: str
    registers: tuple[str, ...]
    """As assemblers write them, destinations first."""
    remark: str = ""
    """Wait counts and numbers of ``s_nop``, ``s_setprio`` and ``s_sleep``; of matrix instructions
    that take several formats, ``cbsz`` and ``blgp``."""
    address: int = 0
    """The instruction's address in bytes."""


Range = tuple[int, int]
"""First register and how many, in one numbering of all registers of a wave."""

_FIRST = {"v": 0, "a": 512, "s": 1024, "ttmp": 1136}
_NAMED: dict[str, Range] = {
    "vcc": (1130, 2), "vcc_lo": (1130, 1), "vcc_hi": (1131, 1),
    "exec": (1132, 2), "exec_lo": (1132, 1), "exec_hi": (1133, 1),
    "scc": (1134, 1), "m0": (1135, 1),
    "vector result": (1152, 1), "scalar of vector": (1153, 1),
}  # fmt: skip
_REGISTER = re.compile(r"[-|]*(v|a|s|ttmp)(?:(\d+)|\[(\d+):(\d+)\])")

_NO_RESULT = re.compile(
    r"s_cmp|s_bitcmp|s_c?branch|s_wait|s_setreg|s_nop|s_barrier|s_set|s_endpgm|s_sleep|"
    r"v_cmp\w*_e32|v_cmpx|v_cmp\w*_sdwa|ds_(write|store)|"
    r"(buffer|global|flat|scratch|tbuffer)_store|s_(scratch_|buffer_)?store"
)
_CARRY = re.compile(r"v_\w+_co_\w*(u32$|u32_e64|ci_u32)|v_mad_u?i?64|v_div_scale")
_IMPLICIT_WRITES = (
    (re.compile(r"s_(cmp|bitcmp|add|sub|and|x?n?or|not|lsh|ash|bfe|min|max|abs|nand)"), "scc"),
    (re.compile(r"s_\w*saveexec|s_\w*wrexec|v_cmpx"), "exec"),
    (re.compile(r"v_cmp_\w*(_e32|_sdwa)|v_(add|sub|subrev)(c|b|brev)?_co(_ci)?_u32_e32"), "vcc"),
)  # fmt: skip
_IMPLICIT_READS = (
    (re.compile(r"s_(cselect|addc|subb|cmov|cbranch_scc)"), "scc"),
    (re.compile(r"s_\w*saveexec|s_cbranch_exec"), "exec"),
    (re.compile(r"s_cbranch_vcc|v_cndmask_b32_(e32|sdwa|dpp)|v_(addc|subb(rev)?)_co_u32"), "vcc"),
)  # fmt: skip


def _range(register: str) -> Range | None:
    if register in _NAMED:
        return _NAMED[register]
    match = _REGISTER.fullmatch(register.strip("|"))
    if match is None:
        return None
    low = int(match[2] or match[3])
    high = int(match[4] or low)
    return _FIRST[match[1]] + low, high - low + 1


_MEMORY = re.compile(r"(ds|buffer|global|flat|scratch|tbuffer|image)_")
_VECTOR = re.compile(r"v_(?!mfma|smfmac|wmma|swmmac)")
_SCALARS = range(_FIRST["s"], _NAMED["exec"][0])
_ORDER = (
    (_VECTOR, True, "vector result"),
    (_MEMORY, False, "vector result"),
    (re.compile(r"s_(?!waitcnt|nop|barrier|setprio|sleep)"), False, "scalar of vector"),
)
"""Units that keep an order of their own, whichever registers are named: as if they wrote and read
registers of these names. Memory operations wait for the vector operation before, scalar operations
for the scalar results of vector operations (seen in the traces of MI325X)."""


def accessed(instruction: Instruction) -> tuple[list[Range], list[Range]]:
    """Return the registers that an instruction writes and those that it reads.

    Example:
        >>> accessed(Instruction("v_add_f32_e32", ("v1", "v[2:3]")))
        ([(1, 1), (1152, 1)], [(2, 2)])
    """
    op, registers = instruction.op, instruction.registers
    results = 0 if _NO_RESULT.match(op) and registers[:1] != ("vcc_lo",) else 1
    if _CARRY.match(op):
        results = 2
    writes = [_range(r) for r in registers[:results]]
    reads = [_range(r) for r in registers[results:]]
    writes += [_NAMED[name] for pattern, name in _IMPLICIT_WRITES if pattern.match(op)]
    reads += [_NAMED[name] for pattern, name in _IMPLICIT_READS if pattern.match(op)]
    for pattern, written, name in _ORDER:
        if pattern.match(op):
            (writes if written else reads).append(_NAMED[name])
    if _VECTOR.match(op) and any(r and r[0] in _SCALARS for r in writes):
        writes.append(_NAMED["scalar of vector"])
    return [r for r in writes if r], [r for r in reads if r]


_WAIT = re.compile(r"(vmcnt|lgkmcnt|expcnt|vscnt)\((\d+)\)")
_OLD_COUNTERS = {"vmcnt": "load", "lgkmcnt": "ds", "expcnt": "export", "vscnt": "store"}
_NEW_COUNTERS = {
    "load": "load", "store": "store", "ds": "ds", "km": "scalar", "exp": "export",
    "sample": "sample", "bvh": "sample",
}  # fmt: skip


def waits(instruction: Instruction) -> dict[str, int]:
    """Return how many operations of each counter may be under way behind a wait.

    Example:
        >>> waits(Instruction("s_waitcnt", (), "vmcnt(2) lgkmcnt(0)"))
        {'load': 2, 'ds': 0}
        >>> waits(Instruction("s_wait_loadcnt_dscnt", (), "0x103"))
        {'load': 1, 'ds': 3}
    """
    old = {_OLD_COUNTERS[name]: int(left) for name, left in _WAIT.findall(instruction.remark)}
    if old or not (names := re.findall(r"([a-z]+)cnt", instruction.op.removeprefix("s_wait"))):
        return old
    number = int(instruction.remark or "0", 0)
    names = [name.strip("_") for name in names]
    shifts = [8 * (len(names) - 1 - place) for place in range(len(names))]
    mask = 0x3F
    return {
        _NEW_COUNTERS[name]: number >> shift & mask
        for name, shift in zip(names, shifts, strict=True)
        if name in _NEW_COUNTERS
    }


_WIDTHS = (
    (re.compile(r"\w*(dwordx4|b128|_xyzw|_format_d16_xyzw)"), 16),
    (re.compile(r"\w*(dwordx3|b96|_xyz)"), 12),
    (re.compile(r"\w*(dwordx2|[bui]64|f64|_xy|_x2)"), 8),
    (re.compile(r"\w*(ubyte|sbyte|byte|[ui]8|b8)"), 1),
    (re.compile(r"\w*(ushort|sshort|short|[ui]16|b16)"), 2),
)
_WORD = 4


@cache
def lane_bytes(op: str) -> int:
    """Return the bytes that a memory operation moves for each lane.

    Example:
        >>> lane_bytes("buffer_load_dwordx4"), lane_bytes("ds_read2_b64")
        (16, 16)
    """
    twice = 1 + bool(re.match(r"ds_(read|write|load|store)2", op))
    return twice * next((width for pattern, width in _WIDTHS if pattern.match(op)), _WORD)


def _counter(constants: ClockConstants, unit: str) -> int:
    major, _, _ = arch(constants.gpu).version
    split_stores, split_scalar = major >= 10, major >= 12
    name = {
        "vmem": "load",
        "store": "store" if split_stores else "load",
        "lds": "ds",
        "smem": "scalar" if split_scalar else "ds",
    }.get(unit)
    return -1 if name is None else COUNTERS.index(name)


def _unit_cycles(instruction: Instruction, row: OperationRow, constants: ClockConstants) -> int:
    """Return the cycles of the unit for one instruction whose lanes access neighbours."""
    if row.busy:
        return row.busy
    if row.unit == "matrix":
        shape = matrix_shape(instruction.op, instruction.remark)
        cycles = None if shape is None else matrix_cycles(shape, constants.matrix)
        return 0 if cycles is None else cycles
    if row.unit in ("vmem", "store"):
        lanes = arch(constants.gpu).wave_size
        moved = lanes * lane_bytes(instruction.op)
        addresses = lanes / constants["address_lanes"]
        return round(max(addresses, moved / constants["load_bytes_per_clock"]))
    return 0


_REPEATED = ("s_nop", "s_sleep")


def _issue_cycles(instruction: Instruction, row: OperationRow) -> int:
    if instruction.op in _REPEATED:
        return row.issue * (int(instruction.remark or "0", 0) + (instruction.op == "s_nop"))
    return row.issue


def timed(instruction: Instruction, constants: ClockConstants) -> COp | None:
    """Return the instruction as the compute unit takes it; None if the clock has no cost for it."""
    row = constants.operation(instruction.op)
    if row is None:
        return None
    busy = _unit_cycles(instruction, row, constants)
    if row.unit == "matrix" and busy == 0:
        return None
    result = COp(
        unit=UNITS.index(row.unit),
        issue=_issue_cycles(instruction, row),
        busy=busy,
        latency=row.latency or busy,
        counter=_counter(constants, row.unit),
        bytes=lane_bytes(instruction.op) * arch(constants.gpu).wave_size,
        place=instruction.address,
        priority=int(instruction.remark or "0", 0) if instruction.op == "s_setprio" else -1,
        width=SLOTS.index(row.slot) if row.slot in SLOTS else -1,
    )
    asked = waits(instruction) if row.unit == "wait" else {}
    result.wait[:] = [asked.get(name, -1) for name in COUNTERS]
    _set_ranges(result, instruction)
    return result


def _set_ranges(result: COp, instruction: Instruction) -> None:
    writes, reads = accessed(instruction)
    ranges: Sequence[tuple[Range, bool]] = [(r, True) for r in writes] + [(r, False) for r in reads]
    result.ranges = min(len(ranges), RANGES)
    for place, ((first, count), written) in enumerate(ranges[:RANGES]):
        result.first[place], result.count[place] = first, count
        result.writes[place] = int(written)
