# SPDX-License-Identifier: MIT
"""The C++ parts of the clock, compiled once a machine, and their structs."""

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cklang.toolchain.built_library import compiled_library

Integers = npt.NDArray[np.int64]
Phases = npt.NDArray[np.int32]

UNITS = (
    "valu", "trans", "matrix", "salu", "smem", "vmem", "lds",
    "branch", "wait", "barrier", "internal", "end", "store",
)  # fmt: skip
"""In the order of ``Unit`` in ``compute_unit.cpp``."""
COUNTERS = ("load", "store", "ds", "scalar", "export", "sample")
"""Counters of waits. GPUs before gfx12 count two of these in one: see ``instruction.py``."""
REASONS = (
    "none", "load", "store", "LDS", "scalar load", "other counter", "barrier", "matrix result",
    "vector result", "scalar result", "vector unit busy", "matrix unit busy", "scalar unit busy",
    "LDS queue full", "memory queue full", "s_nop, s_sleep", "instruction fetch",
)  # fmt: skip
"""Why a wave does not issue, in the order of ``Reason`` in ``compute_unit.cpp``."""
RANGES = 10
"""Ranges of registers that an instruction names at most."""

_FOLDER = Path(__file__).parent
_FLAGS = (
    "-O2",
    "-fno-exceptions",
    "-fno-rtti",
    "-Wall",
    "-Wextra",
    "-Wno-missing-field-initializers",
)


class COp(ctypes.Structure):
    """``Op`` of ``compute_unit.cpp``."""

    _fields_ = (
        ("unit", ctypes.c_int32),
        ("issue", ctypes.c_int32),
        ("busy", ctypes.c_int32),
        ("latency", ctypes.c_int32),
        ("counter", ctypes.c_int32),
        ("bytes", ctypes.c_int32),
        ("priority", ctypes.c_int32),
        ("place", ctypes.c_int32),
        ("ranges", ctypes.c_int32),
        ("wait", ctypes.c_int32 * len(COUNTERS)),
        ("first", ctypes.c_int32 * RANGES),
        ("count", ctypes.c_int32 * RANGES),
        ("writes", ctypes.c_int32 * RANGES),
        ("without", ctypes.c_int32),
        ("width", ctypes.c_int32),
    )


class CMachine(ctypes.Structure):
    """``Machine`` of ``compute_unit.cpp``."""

    _fields_ = (
        ("turn", ctypes.c_int32),
        ("simds", ctypes.c_int32),
        ("taken", ctypes.c_int32),
        ("barrier", ctypes.c_int32),
        ("wait_exit", ctypes.c_int32),
        ("lds_latency", ctypes.c_int32),
        ("lds_depth", ctypes.c_int32),
        ("vmem_latency", ctypes.c_int32),
        ("vmem_depth", ctypes.c_int32),
        ("smem_latency", ctypes.c_int32),
        ("store_latency", ctypes.c_int32),
        ("return_256", ctypes.c_int32),
        ("store_256", ctypes.c_int32),
        ("matrix_port", ctypes.c_int32),
        ("valu_shared", ctypes.c_int32),
        ("launch", ctypes.c_int32),
        ("outstanding", ctypes.c_int32),
        ("fetch_bytes", ctypes.c_int32),
        ("fetch_cycles", ctypes.c_int32),
        ("fetch_branch", ctypes.c_int32),
        ("smem_cold", ctypes.c_int32),
        ("burst", ctypes.c_int32),
        ("adjust", (ctypes.c_int32 * len(UNITS)) * len(UNITS)),
        ("idle", ctypes.c_int32 * len(UNITS)),
    )


class CWave(ctypes.Structure):
    """``Wave`` of ``compute_unit.cpp``."""

    _fields_ = (
        ("line", ctypes.c_void_p),
        ("cycles", ctypes.c_void_p),
        ("latency", ctypes.c_void_p),
        ("path", ctypes.c_void_p),
        ("start", ctypes.c_void_p),
        ("stall", ctypes.c_void_p),
        ("length", ctypes.c_void_p),
        ("reason", ctypes.c_void_p),
        ("begin", ctypes.c_int64),
        ("count", ctypes.c_int32),
        ("simd", ctypes.c_int32),
        ("group", ctypes.c_int32),
        ("after", ctypes.c_int32),
        ("write_256", ctypes.c_int32),
        ("end", ctypes.c_int64),
    )


def compute_unit(
    machine: CMachine, ops: ctypes.Array[COp], waves: ctypes.Array[CWave], lost: int | None = None
) -> int:
    """Run the waves to their ends, which they then hold; return the number of attempts to issue.

    Args:
        machine: The constants.
        ops: The listing.
        waves: Older ones first.
        lost: Address of the cycles that waves lose, [line, reason], to which these are added.
    """
    run = _library("compute_unit").ck_compute_unit
    run.restype = ctypes.c_int64
    attempts = int(run(ctypes.byref(machine), ops, waves, len(waves), ctypes.c_void_p(lost)))
    if attempts < 0:
        raise MemoryError("the clock has no memory for the state of its waves")
    return attempts


def lds_passes(address: npt.NDArray[np.uint32], phase: Phases, banks: int, words: int) -> Integers:
    """Return the passes of instructions of the LDS, [instruction, phase], as ``lds.py`` says.

    Args:
        address: In bytes, of each lane; ``DISABLED`` where it takes no part, [instruction, lane].
        phase: In which each lane is served, [lane].
        banks: Of the LDS, for such accesses.
        words: That each lane accesses.
    """
    phases = int(phase.max()) + 1
    result = np.zeros((len(address), phases), np.int64)
    address = np.ascontiguousarray(address)
    phase = np.ascontiguousarray(phase, dtype=np.int32)
    _library("addresses").ck_lds_passes(
        pointer(address), ctypes.c_int64(len(address)), pointer(phase),
        phases, banks, words, pointer(result),
    )  # fmt: skip
    return result


def addresses_function(name: str) -> Callable[..., int]:
    """Return a function of ``addresses.cpp``."""
    function = getattr(_library("addresses"), name)
    function.restype = ctypes.c_int64
    call: Callable[..., int] = function
    return call


def pointer(values: npt.NDArray[np.generic]) -> ctypes.c_void_p:
    """Return the address of an array's values."""
    return ctypes.c_void_p(values.ctypes.data)


@cache
def _library(name: str) -> ctypes.CDLL:
    return ctypes.CDLL(str(compiled_library(_FOLDER / f"{name}.cpp", _FLAGS)))
