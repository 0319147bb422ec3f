# SPDX-License-Identifier: MIT
"""How many planted mistakes the emulator's checks report, in kernels of Triton and of CK Tile.

    python benchmarks/sanitizer_study.py [--mutants 8] [--seed 0] [--gpu NAME ...] [--only WORD ...]
                                         [--verbose]
    python benchmarks/sanitizer_study.py --cost

Takes one instruction at a time out of a compiled kernel, or changes its address, runs the kernel
with all checks on, and prints the table of docs/emulator.md: what was changed, how many of these
mutants are reported and by which check, how many give other results without a report, and how many
do neither (``--verbose`` lists these): no run gets there, or another wait covers for it. The first
line says how many kernels were run as they are, and how many of these are reported. ``--cost``
prints instead how much longer kernels run under each check.
"""

from __future__ import annotations

import argparse
import ctypes
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ck_mutants import OPS, run_op

from cklang import emulator, knobs
from cklang.errors import CkError

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.emulator import test_triton
from tests.support import triton_kernels
from tests.support.assembly import DEVICES, hip, ok

SECONDS = 60
"""After which a mutant ends: some spin for ever."""

REPORTS = {
    "missing wait": "waits",
    "race in local memory": "races",
    "uninitialized local memory": "uninitialized",
    "out of bounds": "memory",
    "hazard": "hazards",
    "race in global memory": "global_races",
    "memory access fault": "fault",
}
"""How the report of each check begins; a fault needs no check."""

_NOP = 0xBF800000

_COUNTERS = {
    0xBF8C: ((0, 4), (8, 4)),  # s_waitcnt of CDNA: vmcnt's lower bits, lgkmcnt
    0xBF89: ((10, 6), (4, 6)),  # and of gfx11
    0xBFC0: ((0, 6),),  # s_wait_loadcnt
    0xBFC6: ((0, 6),),  # s_wait_dscnt
    0xBFC7: ((0, 5),),  # s_wait_kmcnt
}
"""Where the counters of a wait are: first bit and bits. All ones wait for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """A kind of change to an instruction: which ones, and the word that it becomes."""

    name: str
    pattern: str
    change: Callable[[int], int]
    """From the first word of the instruction."""
    wild: bool = False
    """Whether the kernel may then write anywhere: its memory must be the device's own."""


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


MISTAKES = (
    Mistake(name="a wait removed", pattern=r"s_wait(cnt|_\w+cnt)\b", change=lambda _: _NOP),
    Mistake(
        name="a wait for one fewer",
        pattern=r"s_wait(cnt (vmcnt|lgkmcnt)\(\d+\)$|_(load|ds|km)cnt )",
        change=_one_more_in_flight,
    ),
    Mistake(name="a barrier removed", pattern=r"s_barrier", change=lambda _: _NOP),
    Mistake(name="an s_nop shortened", pattern=r"s_nop [1-9]", change=lambda _: _NOP),
    Mistake(
        name="an LDS address moved by a dword",
        pattern=r"ds_(read|write|load|store)_b",
        change=_plus(16, 4),
    ),
    Mistake(
        name="a global address moved by a page",
        pattern=r"global_(load|store)_[bd]\w+ ",
        change=lambda word: word & ~0xFFF | (word + 0xFF0) & 0xFFF,
        wild=True,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A kernel, its code, and a function that runs it and says whether its results are right."""

    gpu: str
    name: str
    code: bytes
    run: Callable[[bytes], str]
    """Run this code; "" if all is right, else what is wrong."""
    own_memory: bool
    """Whether its arguments are in memory of the device, with pages behind it that fault."""


def text_offset(code: bytes) -> int:
    """Where the instructions of an ELF file begin."""
    return code.index(emulator.library.text_section(code))


def sites(kernel: Kernel, mistake: Mistake) -> list[int]:
    """Offsets in the file of the instructions that the mistake can change."""
    lines = emulator.disassemble(kernel.gpu, kernel.code).splitlines()
    base = text_offset(kernel.code)
    pairs = (line.strip().split(": ", 1) for line in lines)
    return [base + int(at, 16) for at, text in pairs if re.match(mistake.pattern, text.strip())]


def mutant(kernel: Kernel, mistake: Mistake, at: int) -> bytes:
    """The code with the instruction at that offset changed."""
    word = int.from_bytes(kernel.code[at : at + 4], "little")
    changed = mistake.change(word).to_bytes(4, "little")
    return kernel.code[:at] + changed + kernel.code[at + 4 :]


def described(kernel: Kernel, at: int) -> str:
    """The instruction at that offset and the two behind it."""
    lines = emulator.disassemble(kernel.gpu, kernel.code).splitlines()
    offsets = [int(line.strip().partition(":")[0], 16) for line in lines]
    first = offsets.index(at - text_offset(kernel.code))
    return "; ".join(line.strip() for line in lines[first : first + 3])


def verdict(kernel: Kernel, code: bytes) -> str:
    """The check that reports the code, "result" if its results are wrong, or "nothing"."""
    problem = kernel.run(code)
    if not problem:
        return "nothing"
    for beginning, check in REPORTS.items():
        if beginning in problem:
            return check
    return "result"


@contextmanager
def triton_code(code: bytes) -> Iterator[None]:
    """Let the tests' Triton kernels be this code."""
    names = vars(test_triton)
    original, original_run = triton_kernels._function, names["run"]

    def function(gpu: str, name: str) -> Any:
        ok(hip().hipSetDevice(DEVICES.index(gpu)))
        module = ok(hip().hipModuleLoadData(code))
        symbol = triton_kernels.MADE[gpu][name]["kernel"].encode()
        return ok(hip().hipModuleGetFunction(module, symbol))

    def run(gpu: str, name: str, grid: tuple[int, int], *values: Any) -> None:
        arrays = [on_device(value) if isinstance(value, np.ndarray) else value for value in values]
        original_run(gpu, name, grid, *arrays)
        for value, array in zip(values, arrays, strict=True):
            if isinstance(value, np.ndarray):
                value[...] = array
                hip().hipFree(array.ctypes.data)

    triton_kernels._function = function  # type: ignore[assignment]
    names["run"] = run
    try:
        yield
    finally:
        triton_kernels._function = original
        names["run"] = original_run


def on_device(array: np.ndarray) -> np.ndarray:
    """A copy in memory of the device, which the host of an emulated one can read too."""
    address = int(ok(hip().hipMalloc(array.nbytes)))
    memory = (ctypes.c_uint8 * array.nbytes).from_address(address)
    copy: np.ndarray = np.ctypeslib.as_array(memory).view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def triton_kernel(gpu: str, name: str, test: Callable[[str, str], None]) -> Kernel:
    """One of the code objects that stand beside the tests."""

    def run(code: bytes) -> str:
        with triton_code(code):
            try:
                test(gpu, name)
            except AssertionError as problem:
                return after_failure(DEVICES.index(gpu)) or str(problem) or "wrong"
        return ""

    code = (triton_kernels.FOLDER / gpu / f"{name}.hsaco").read_bytes()
    return Kernel(gpu=gpu, name=name, code=code, run=run, own_memory=True)


def after_failure(device: int) -> str:
    """Why the device has failed, if it has; it works again."""
    text = emulator.fault(device)
    hip().hipSetDevice(device)
    hip().hipDeviceReset()
    return text


Wanted = Callable[[str, str], bool]
"""Whether to study a kernel, by GPU and name."""


def triton_all(wanted: Wanted) -> Iterator[Kernel]:
    """The kernels of Triton, whose tests compare them with NumPy."""
    for gpu in test_triton.GPUS:
        for kind in ("gemm", "softmax", "attention"):
            for name in triton_kernels.MADE[gpu]:
                if name.startswith(kind) and wanted(gpu, name):
                    yield triton_kernel(gpu, name, getattr(test_triton, f"test_{kind}"))


def ck_all(wanted: Wanted) -> Iterator[Kernel]:
    """Kernels of CK Tile that cklang's ops launch: a product, attention, a norm."""
    for gpu in ("gfx942", "gfx950"):
        for name, op in OPS.items():
            for code in op.codes(gpu) if wanted(gpu, f"ck {name}") else ():
                yield Kernel(
                    gpu=gpu,
                    name=f"ck {name}",
                    code=code,
                    run=run_op(op, gpu, code),
                    own_memory=False,
                )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=8, help="of each kind and kernel, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="list what nothing reports")
    parser.add_argument("--gpu", nargs="+", default=[])
    parser.add_argument("--only", nargs="+", default=[])
    arguments = parser.parse_args()
    emulator.load()
    emulator.sanitize("all")
    emulator.timeout(SECONDS)

    def wanted(gpu: str, name: str) -> bool:
        right_name = not arguments.only or any(word in name for word in arguments.only)
        return right_name and (not arguments.gpu or gpu in arguments.gpu)

    kernels = [*triton_all(wanted), *ck_all(wanted)]
    clean = [kernel for kernel in kernels if report_of_clean(kernel)]
    if arguments.cost:
        print(costs(kernels))
        return
    print(f"{len(kernels)} kernels run as they are; reported: {len(kernels) - len(clean)}\n")
    rng, counts = random.Random(arguments.seed), Counter[tuple[str, str]]()
    for kernel in clean:
        for mistake in MISTAKES:
            places = sites(kernel, mistake) if kernel.own_memory or not mistake.wild else []
            for at in rng.sample(places, min(arguments.mutants, len(places))):
                code = mutant(kernel, mistake, at)
                if code == kernel.code:
                    continue
                outcome = verdict(kernel, code)
                counts[mistake.name, outcome] += 1
                if arguments.verbose and outcome == "nothing":
                    print(f"{mistake.name}: {kernel.gpu} {kernel.name}: {described(kernel, at)}")
    print(table(counts))


def engine_seconds(kernel: Kernel, *checks: str) -> float:
    """The least time of three runs in the emulator's engine, under these checks."""
    emulator.sanitize(*checks)
    device, times = DEVICES.index(kernel.gpu), []
    for _ in range(3):
        kernel.run(kernel.code)
        times.append(emulator.stats(device).nanoseconds)
    return min(times) / 1e9


def costs(kernels: list[Kernel]) -> str:
    """How many times longer the kernels run together under each check, in Markdown."""
    plain = sum(engine_seconds(kernel) for kernel in kernels)
    lines = ["| check | times as long |", "|---|---|"]
    for check in (*knobs.SANITIZERS, "all"):
        checked = sum(engine_seconds(kernel, check) for kernel in kernels)
        lines.append(f"| {check} | {checked / plain:.1f} |")
    return "\n".join(lines)


def report_of_clean(kernel: Kernel) -> bool:
    """Whether nothing is reported of the kernel as it is; what is, is printed."""
    with np.errstate(all="ignore"):
        problem = kernel.run(kernel.code)
    if problem:
        print(f"{kernel.gpu} {kernel.name}: {problem}")
    return not problem


def table(counts: Counter[tuple[str, str]]) -> str:
    """The table in Markdown."""
    checks = list(REPORTS.values())
    heads = ["mistake", "mutants", "reported", *checks, "wrong result alone", "neither"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for mistake in MISTAKES:
        row = {check: counts[mistake.name, check] for check in (*checks, "result", "nothing")}
        total, reported = sum(row.values()), sum(row[check] for check in checks)
        cells = [mistake.name, total, reported, *row.values()]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    try:
        main()
    except CkError as problem:
        sys.exit(str(problem))
