# SPDX-License-Identifier: MIT
"""Counters under AMD's names, as rocprofv3 and rocprof-compute print them, summed over the GPU."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod

import numpy as np
import numpy.typing as npt

from cklang.emulator.clock.constants import ClockConstants
from cklang.emulator.clock.matrix import matrix_shape
from cklang.emulator.clock.native import REASONS
from cklang.emulator.engine.recording import RecordedLaunch
from cklang.emulator.profiler.facts import LaunchFacts
from cklang.emulator.profiler.memory import L2_LINE, BeyondL2, CacheRequests
from cklang.emulator.profiler.shared_caches import fetches_of, instruction_misses, scalar_misses

_QUAD = 4
"""CDNA's counters of wave cycles count in fours."""
_MATRIX_OPERATIONS = 512
"""What ``SQ_INSTS_VALU_MFMA_MOPS_*`` count in."""


@dataclass(frozen=True, slots=True)
class Counter:
    """A counter of a launch."""

    name: str
    value: float
    origin: str
    """``executed``: counted over every workgroup. ``recorded``: of the recorded workgroups, scaled
    to all of them. ``timed``: by the clock."""


_SCALAR_MEMORY = re.compile(
    r"s_(load|buffer_load|scratch_load|store|buffer_store|atomic|buffer_atomic|dcache|mem(real)?time)"
)
_SCALAR_CACHE = re.compile(
    r"s_(load|buffer_load|scratch_load|store|buffer_store|atomic|buffer_atomic)"
)
_SCALAR_ATOMIC = re.compile(r"s_(buffer_)?atomic")
_BRANCH = re.compile(r"s_(c?branch|setpc|swappc|call)")
_MESSAGE = re.compile(r"s_(sendmsg|endpgm)")
_INTERNAL = re.compile(
    r"s_(wait|nop|barrier|sleep|setprio|sethalt|inst_prefetch|clause|delay_alu|set_gpr|icache|code_end)"
)
_FLAT = re.compile(r"(flat|global|scratch)_")
_BUFFER = re.compile(r"t?buffer_")
_MATRIX = re.compile(r"v_(mfma|smfmac|wmma|swmmac)")


def _is_scalar(op: str) -> bool:
    others = (_SCALAR_MEMORY, _BRANCH, _MESSAGE, _INTERNAL)
    return op.startswith("s_") and not any(pattern.match(op) for pattern in others)


def _is_memory(op: str) -> bool:
    return bool(_FLAT.match(op) or _BUFFER.match(op)) and not re.match(r"\w+_(inv|wb)", op)


def _is_write(op: str) -> bool:
    return _is_memory(op) and "store" in op


def _is_atomic(op: str) -> bool:
    return _is_memory(op) and "atomic" in op


def _is_read(op: str) -> bool:
    return _is_memory(op) and not _is_write(op) and not _is_atomic(op)


def _writes(op: str) -> bool:
    return _is_write(op) or _is_atomic(op)


def _scalar_read(times: str) -> Callable[[str], bool]:
    names = [f"s_{kind}load_dword{times}" for kind in ("", "buffer_", "scratch_")]
    return lambda op: op in names


def _vector(name: str, types: str) -> Callable[[str], bool]:
    pattern = re.compile(rf"v_(pk_|dual_)?({name})\w*_({types})(_e32|_e64|_sdwa|_dpp|$)")
    return lambda op: bool(pattern.match(op))


_CONVERSION = re.compile(r"v_(pk_|dual_)?cvt")
_TYPE = re.compile(r"_([uifb]|bf|fp|pk)\d+")


def _integers(bits: str) -> Callable[[str], bool]:
    """Return whether the first type in an operation's name is an integer of so many bits."""

    def counts(op: str) -> bool:
        first = _TYPE.search(op)
        others = _MATRIX.match(op) or _CONVERSION.match(op)
        return op.startswith("v_") and first is not None and not others and first[0] in types

    types = (f"_i{bits}", f"_u{bits}")
    return counts


def _is_other(op: str) -> bool:
    return bool(_BRANCH.match(op) or _MESSAGE.match(op)) or op.startswith("s_barrier")


_EXECUTED: dict[str, Callable[[str], bool]] = {
    "SQ_INSTS": lambda op: True,
    "SQ_INSTS_VALU": lambda op: op.startswith("v_"),
    "SQ_INSTS_MFMA": lambda op: bool(_MATRIX.match(op)),
    "SQ_INSTS_SALU": _is_scalar,
    "SQ_INSTS_SMEM": lambda op: bool(_SCALAR_MEMORY.match(op)),
    "SQ_INSTS_LDS": lambda op: op.startswith("ds_"),
    "SQ_INSTS_FLAT": lambda op: bool(_FLAT.match(op)),
    "SQ_INSTS_VMEM": _is_memory,
    "SQ_INSTS_VMEM_RD": _is_read,
    "SQ_INSTS_VMEM_WR": _writes,
    "SQ_INST_CYCLES_SALU": _is_scalar,
    "SQ_INST_CYCLES_SMEM": lambda op: bool(_SCALAR_MEMORY.match(op)),
    "SQ_INST_CYCLES_VMEM_RD": _is_read,
    "SQ_INST_CYCLES_VMEM_WR": _writes,
    "SQ_ACTIVE_INST_FLAT": lambda op: bool(_FLAT.match(op)),
    "SQ_INSTS_BRANCH": lambda op: bool(_BRANCH.match(op)),
    "SQ_INSTS_SENDMSG": lambda op: bool(_MESSAGE.match(op)),
    "SQ_INSTS_VALU_ADD_F16": _vector("add|sub|subrev", "f16"),
    "SQ_INSTS_VALU_MUL_F16": _vector("mul", "f16"),
    "SQ_INSTS_VALU_FMA_F16": _vector("fma|fmac|mad|mac", "f16"),
    "SQ_INSTS_VALU_ADD_F32": _vector("add|sub|subrev", "f32"),
    "SQ_INSTS_VALU_MUL_F32": _vector("mul", "f32"),
    "SQ_INSTS_VALU_FMA_F32": _vector("fma|fmac|mad|mac", "f32"),
    "SQ_INSTS_VALU_TRANS_F32": _vector("rcp|rsq|sqrt|exp|log|sin|cos", "f32"),
    "SQ_INSTS_VALU_TRANS_F16": _vector("rcp|rsq|sqrt|exp|log|sin|cos", "f16"),
    "SQ_INSTS_VALU_TRANS_F64": _vector("rcp|rsq|sqrt", "f64"),
    "SQ_INSTS_VALU_CVT": lambda op: bool(_CONVERSION.match(op)),
    "SQ_INSTS_VALU_INT32": _integers("32"),
    "SQ_INSTS_VALU_INT64": _integers("64"),
    "SQ_ACTIVE_INST_MISC": _is_other,
    "SQ_INSTS_VALU_ADD_F64": _vector("add|sub|subrev", "f64"),
    "SQ_INSTS_VALU_MUL_F64": _vector("mul", "f64"),
    "SQ_INSTS_VALU_FMA_F64": _vector("fma|fmac|mad|mac", "f64"),
    "TA_FLAT_WAVEFRONTS_sum": lambda op: bool(_FLAT.match(op)) and _is_memory(op),
    "TA_FLAT_READ_WAVEFRONTS_sum": lambda op: bool(_FLAT.match(op)) and _is_read(op),
    "TA_FLAT_WRITE_WAVEFRONTS_sum": lambda op: bool(_FLAT.match(op)) and _is_write(op),
    "TA_FLAT_ATOMIC_WAVEFRONTS_sum": lambda op: bool(_FLAT.match(op)) and _is_atomic(op),
    "TA_BUFFER_WAVEFRONTS_sum": lambda op: bool(_BUFFER.match(op)) and _is_memory(op),
    "TA_BUFFER_READ_WAVEFRONTS_sum": lambda op: bool(_BUFFER.match(op)) and _is_read(op),
    "TA_BUFFER_WRITE_WAVEFRONTS_sum": lambda op: bool(_BUFFER.match(op)) and _is_write(op),
    "TA_BUFFER_ATOMIC_WAVEFRONTS_sum": lambda op: bool(_BUFFER.match(op)) and _is_atomic(op),
    "TA_TOTAL_WAVEFRONTS_sum": _is_memory,
    "TD_LOAD_WAVEFRONT_sum": _is_memory,
    "TD_STORE_WAVEFRONT_sum": _writes,
    "TD_ATOMIC_WAVEFRONT_sum": _is_atomic,
    "TCP_TA_TCP_STATE_READ_sum": _is_memory,
    "SQC_DCACHE_REQ": lambda op: bool(_SCALAR_CACHE.match(op)),
    "SQC_DCACHE_ATOMIC": lambda op: bool(_SCALAR_ATOMIC.match(op)),
    "SQC_TC_DATA_ATOMIC_REQ": lambda op: bool(_SCALAR_ATOMIC.match(op)),
    "SQC_DCACHE_REQ_READ_1": _scalar_read(""),
    "SQC_DCACHE_REQ_READ_2": _scalar_read("x2"),
    "SQC_DCACHE_REQ_READ_4": _scalar_read("x4"),
    "SQC_DCACHE_REQ_READ_8": _scalar_read("x8"),
    "SQC_DCACHE_REQ_READ_16": _scalar_read("x16"),
}  # fmt: skip
"""Counters of instructions, with which operations each counts."""

MATRIX_TYPES = ("F16", "BF16", "F32", "F64", "I8", "F8")
"""The types that have counters of matrix operations."""

_WAITS = ("load", "store", "LDS", "scalar load", "other counter", "barrier")
_ISSUE = (
    "vector unit busy", "matrix unit busy", "scalar unit busy", "LDS queue full",
    "memory queue full", "matrix result", "vector result", "scalar result",
)  # fmt: skip

ABSENT: dict[str, str] = {
    "TCP_TOTAL_CACHE_ACCESSES_sum": "the L1 is modelled by lines, not by tags",
    "TCP_TOTAL_ACCESSES_sum": "which lanes of a wave that is not full it counts is not published",
    "SQ_ACTIVE_INST_LDS": "how long an instruction of the LDS keeps its arbiter is not published",
    "TCP_UTCL1_REQUEST_sum": "translation of addresses is not modelled by address",
    "TCP_PENDING_STALL_CYCLES_sum": "stalls inside of the L1 are not modelled",
    "TD_TD_BUSY_sum": "the return path is a rate, not a unit",
    "TCC_EA0_RDREQ_32B_sum": "parts of a line are not fetched alone in the model",
    "SPI_CSN_BUSY": "the dispatcher is not modelled",
    "SPI_RA_REQ_NO_ALLOC_CSN": "the dispatcher is not modelled",
    "GRBM_SPI_BUSY": "the dispatcher is not modelled",
    "CPC_CPC_STAT_BUSY": "the command processor is not modelled",
}
"""Counters that people ask for and that the model does not have, with the reason."""

_OF_ALL = "needs a record of every workgroup, and a GPU whose L1 and L2 have lines of one size"
_L2 = (
    "TCC_HIT_sum", "TCC_MISS_sum", "TCC_EA0_RDREQ_sum", "TCC_EA0_RDREQ_DRAM_sum",
    "TCC_BUBBLE_sum", "TCC_EA0_WRREQ_sum", "TCC_EA0_WRREQ_DRAM_sum", "FETCH_SIZE", "WRITE_SIZE",
)  # fmt: skip


def absent(counters: Sequence[Counter]) -> dict[str, str]:
    """Return the counters that a launch with these ones lacks, with the reasons.

    Example:
        >>> absent([])["FETCH_SIZE"]
        'needs a record of every workgroup, and a GPU whose L1 and L2 have lines of one size'
    """
    known = {counter.name for counter in counters}
    return ABSENT | {name: _OF_ALL for name in _L2 if name not in known}


def counted(facts: LaunchFacts, requests: CacheRequests | None) -> tuple[Counter, ...]:
    """Return the counters of a launch that need no clock."""
    launch = facts.detail.launch
    counters = [
        Counter("SQ_WAVES", facts.waves, "executed"),
        Counter("SQ_ITEMS", prod(launch.groups) * prod(launch.block), "executed"),
        *_of_waves(launch),
        *_of_instructions(facts),
        *_of_matrices(facts),
        Counter("SQ_ACTIVE_INST_VALU", _issued(facts, "valu", "trans", "matrix"), "executed"),
        Counter("SQ_ACTIVE_INST_SCA", _count(facts, "salu", "smem"), "executed"),
        Counter("SQ_INSTS_SMEM_NORM", 2 * _count(facts, "smem"), "executed"),
        Counter("SQ_THREAD_CYCLES_VALU", _thread_cycles(facts), "recorded"),
        Counter("SQ_LDS_BANK_CONFLICT", float(facts.conflicts.sum()) * facts.scale, "recorded"),
        Counter("SQ_LDS_IDX_ACTIVE", float(facts.lds_cycles.sum()) * facts.scale, "recorded"),
        *_of_shared_caches(facts, facts.detail.prog.constants),
    ]
    if requests is not None:
        counters += _of_requests(requests, facts.scale)
        if requests.beyond is not None:
            counters += _of_l2(requests, requests.beyond)
    return tuple(counters)


def timed(facts: LaunchFacts, cycles: float) -> tuple[Counter, ...]:
    """Return the counters of a launch that the clock gives."""
    return (
        Counter("GRBM_GUI_ACTIVE", cycles, "timed"),
        Counter("GRBM_COUNT", cycles, "timed"),
        *_of_cycles(facts),
    )


@cache
def _counting(op: str) -> npt.NDArray[np.bool_]:
    """Return which counters of ``_EXECUTED`` count an operation, [counter]."""
    return np.array([counts(op) for counts in _EXECUTED.values()])


def _of_instructions(facts: LaunchFacts) -> list[Counter]:
    ops, by_op = facts.detail.code.ops, facts.executed_by_op
    values = np.zeros(len(_EXECUTED))
    for at in np.flatnonzero(by_op).tolist():
        values += _counting(ops[at]) * by_op[at]
    return [
        Counter(name, value, "executed")
        for name, value in zip(_EXECUTED, values.tolist(), strict=True)
    ]


def _of_matrices(facts: LaunchFacts) -> list[Counter]:
    flops, instructions = (dict.fromkeys(MATRIX_TYPES, 0.0) for _ in range(2))
    ops, by_op = facts.detail.code.ops, facts.executed_by_op
    multiplies = np.zeros(len(ops))
    for at in np.flatnonzero(by_op).tolist():
        shape = matrix_shape(ops[at])
        if shape is None:
            continue
        multiplies[at] = shape.multiplies
        kind = shape.dtype.upper().removesuffix("_1K").replace("FP8", "F8").replace("BF8", "F8")
        if kind in flops:
            flops[kind] += 2 * shape.multiplies * by_op[at]
            instructions[kind] += by_op[at]
    busy = 0.0
    if multiplies.any():
        lines = multiplies[facts.detail.code.op_of] > 0
        busy = float((facts.detail.prog.busy * facts.executed)[lines].sum())
    return [
        *(
            Counter(f"SQ_INSTS_VALU_MFMA_MOPS_{kind}", value / _MATRIX_OPERATIONS, "executed")
            for kind, value in flops.items()
        ),
        *(
            Counter(f"SQ_INSTS_VALU_MFMA_{kind}", value, "executed")
            for kind, value in instructions.items()
        ),
        Counter("SQ_VALU_MFMA_BUSY_CYCLES", busy, "executed"),
    ]


def _of_cycles(facts: LaunchFacts) -> list[Counter]:
    waves = sum(len(wave.start) > 0 for wave in facts.detail.unit.waves)
    share = facts.waves / max(waves, 1) / _QUAD
    lost = facts.detail.unit.lost.sum(0)

    def lost_for(*reasons: str) -> float:
        return float(sum(lost[REASONS.index(reason)] for reason in reasons)) * share

    return [
        Counter("SQ_WAVE_CYCLES", facts.wave_cycles * share, "timed"),
        Counter("SQ_WAIT_ANY", lost_for(*_WAITS), "timed"),
        Counter("SQ_WAIT_INST_ANY", lost_for(*_ISSUE), "timed"),
        Counter("SQ_WAIT_INST_LDS", lost_for("LDS queue full"), "timed"),
    ]


def _count(facts: LaunchFacts, *units: str) -> float:
    return float(facts.executed[facts.of_units(*units)].sum())


def _issued(facts: LaunchFacts, *units: str) -> float:
    issue = np.maximum(1.0, facts.detail.prog.issue / _QUAD)
    return float((issue * facts.executed)[facts.of_units(*units)].sum())


def _thread_cycles(facts: LaunchFacts) -> float:
    issue = np.maximum(1.0, facts.detail.prog.issue / _QUAD)
    vector = facts.of_units("valu", "trans", "matrix")
    return float((issue * facts.lanes)[vector].sum()) * facts.scale


def _of_shared_caches(facts: LaunchFacts, constants: ClockConstants) -> list[Counter]:
    """Return fetches of code, and hits and misses of the caches of code and of scalars."""
    detail, executed = facts.detail, facts.executed
    code = instruction_misses(detail, constants, executed)
    ops = np.array([bool(_SCALAR_CACHE.match(op)) for op in detail.code.ops])
    loads = float(executed[ops[detail.code.op_of]].sum())
    scalars = scalar_misses(detail, constants, loads)
    fetches = fetches_of(detail, executed)
    values = {
        "SQC_ICACHE_HITS": code.hits(fetches),
        "SQC_ICACHE_MISSES": code.misses,
        "SQC_ICACHE_MISSES_DUPLICATE": code.duplicates,
        "SQC_DCACHE_HITS": scalars.hits(loads),
        "SQC_DCACHE_MISSES": scalars.misses,
        "SQC_DCACHE_MISSES_DUPLICATE": scalars.duplicates,
        "SQC_TC_INST_REQ": code.lines,
        "SQC_TC_DATA_READ_REQ": scalars.lines,
        "SQC_TC_REQ": code.lines + scalars.lines,
    }
    return [
        *(Counter(name, fetches, "executed") for name in ("SQ_IFETCH", "SQC_ICACHE_REQ")),
        *(Counter(name, value, "recorded") for name, value in values.items()),
    ]


def _of_requests(requests: CacheRequests, scale: float) -> list[Counter]:
    return [
        Counter("TCP_TCC_READ_REQ_sum", requests.reads * scale, "recorded"),
        Counter("TCP_TCC_WRITE_REQ_sum", requests.writes * scale, "recorded"),
        Counter("TCP_TCC_ATOMIC_REQ_sum", requests.atomics * scale, "recorded"),
        Counter("TCP_TCC_RW_READ_REQ_sum", requests.reads * scale, "recorded"),
        Counter("TCP_TCC_RW_WRITE_REQ_sum", requests.writes * scale, "recorded"),
        Counter("TCP_TCC_RW_ATOMIC_REQ_sum", requests.atomics * scale, "recorded"),
        Counter("TCC_WRITE_sum", requests.writes * scale, "recorded"),
        Counter("TCC_ATOMIC_sum", requests.atomics * scale, "recorded"),
        *(Counter(name, count * scale, "recorded") for name, count in _of_lines(requests)),
    ]


def _of_lines(requests: CacheRequests) -> list[tuple[str, int]]:
    """Return the requests for lines: smaller ones become fewer on their way to the L2."""
    if requests.line_bytes != L2_LINE:
        return []
    return [("TCC_READ_sum", requests.reads), ("TCC_REQ_sum", _requests_of(requests))]


def _requests_of(requests: CacheRequests) -> int:
    return requests.reads + requests.writes + requests.atomics


_KILO = 1024
_PIECE = 64
"""Bytes that the L2 writes to memory at once."""


def _of_l2(requests: CacheRequests, beyond: BeyondL2) -> list[Counter]:
    """Return the counters of an L2 that is empty when the launch begins, and behind it."""
    hits, fetched = _requests_of(requests) - beyond.missed, beyond.read * beyond.line_bytes
    values = {
        "TCC_HIT_sum": hits,
        "TCC_MISS_sum": beyond.missed,
        "TCC_EA0_RDREQ_sum": beyond.read,
        "TCC_EA0_RDREQ_DRAM_sum": beyond.read,
        "TCC_BUBBLE_sum": beyond.read,  # Reads of whole lines.
        "TCC_EA0_WRREQ_sum": beyond.written,
        "TCC_EA0_WRREQ_DRAM_sum": beyond.written,
        "FETCH_SIZE": fetched / _KILO,
        "WRITE_SIZE": beyond.written * _PIECE / _KILO,
    }
    return [Counter(name, value, "recorded") for name, value in values.items()]


def _of_waves(launch: RecordedLaunch) -> list[Counter]:
    """Return the counters of what is dispatched."""
    groups = prod(launch.groups)
    whole, rest = divmod(prod(launch.block), launch.lanes)
    rows = [
        Counter("SPI_CSN_NUM_THREADGROUPS", groups, "executed"),
        Counter("SPI_CSN_WAVE", groups * (whole + (rest > 0)), "executed"),
        Counter("SQ_WAVES_SAVED", 0, "executed"),  # No launch is interrupted for another.
        Counter("SQ_WAVES_RESTORED", 0, "executed"),
    ]
    if launch.lanes != _WAVE:
        return rows
    below = [(lanes, groups * (0 < rest < lanes)) for lanes in (_WAVE, 48, 32, 16)]
    return [
        *rows,
        Counter(f"SQ_WAVES_EQ_{_WAVE}", groups * whole, "executed"),
        *(Counter(f"SQ_WAVES_LT_{lanes}", count, "executed") for lanes, count in below),
    ]


_WAVE = 64
"""Lanes of a wave of CDNA."""
