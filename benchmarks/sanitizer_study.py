# SPDX-License-Identifier: MIT
"""How many planted mistakes the emulator's checks report, in kernels of Triton and of CK Tile.

    python benchmarks/sanitizer_study.py [--mutants 8] [--seed 0] [--gpu NAME ...] [--only WORD ...]
                                         [--verbose]
    python benchmarks/sanitizer_study.py --cost

Changes one executed instruction at a time of a compiled kernel, runs the kernel with all checks on,
and prints the tables of docs/emulator.md: how many of these mutants can change a result, how many
of those are reported, and by which check.

Whether a mutant can change a result is found without any check: it runs in four orders of
``emulator.schedule``, of which one lets each memory operation take effect as late as the waits of
the mutant allow. Where all four give the right result, what was taken out was superfluous. The
unmodified kernel must be right in each of the four. Wait states are not modelled, so a missing
``s_nop`` changes nothing here.

``--verbose`` lists the mutants that change a result and are not reported. ``--cost`` prints
instead how much longer kernels run under each check.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import pickle
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
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

SECONDS = 10
"""After which a mutant ends: some spin for ever."""

MOST_WORKGROUPS = 1 << 20
"""More than any launch has: all of its workgroups."""

ORDERS = (0, 1, 2, 3)
"""In which each mutant runs without checks (``emulator.schedule``); under 1 memory operations take
effect as late as they may."""

REPORTS = {
    "missing wait": "waits",
    "race in local memory": "races",
    "uninitialized local memory": "uninitialized",
    "out of bounds": "memory",
    "hazard": "hazards",
    "race in global memory": "global_races",
    "uninitialized device memory": "uninitialized",
    "memory access fault": "fault",
    "a barrier that it has not signalled": "fault",
    "signals a barrier twice": "fault",
    "deadlock": "fault",
}
"""What the report of each check says; a fault needs no check."""

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
        name="a predicate removed",
        pattern=r"s_and_saveexec_b(32|64) s\d",
        change=lambda word: word & ~0xFF | _EXEC,
    ),
    Mistake(
        name="a comparison made true",
        pattern=r"v_cmp_(lt|le|gt|ge)_[iu](32|64)",
        change=_always,
        not_on=("gfx1201",),
    ),
    Mistake(
        name="an LDS address moved by a dword",
        pattern=r"ds_(read|write|load|store)_b",
        change=_plus(16, 4),
    ),
    Mistake(
        name="a global address moved by a page",
        pattern=r"global_(load|store)_[bd]\w+ ",
        change=lambda word: word & ~0xFFF | (word + 0xFF0) & 0xFFF,
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
    family: str
    """Which compiler or library it is of."""


def text_offset(code: bytes) -> int:
    """Where the instructions of an ELF file begin."""
    return code.index(emulator.library.text_section(code))


def executed(kernel: Kernel) -> set[int]:
    """Offsets in the code of the instructions that the kernel executes in its run."""
    code = emulator.library.text_section(kernel.code)
    with emulator.timing(MOST_WORKGROUPS) as recording:
        kernel.run(kernel.code)
    launches = [launch for launch in recording.launches if launch.code == code]
    return {4 * int(line) for launch in launches for wave in launch.waves for line in wave.line}


def sites(kernel: Kernel, mistake: Mistake, ran: set[int]) -> list[int]:
    """Offsets in the file of the executed instructions that the mistake can change."""
    lines = emulator.disassemble(kernel.gpu, kernel.code).splitlines()
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
    lines = emulator.disassemble(kernel.gpu, kernel.code).splitlines()
    offsets = [int(line.strip().partition(":")[0], 16) for line in lines]
    first = offsets.index(at - text_offset(kernel.code))
    return "; ".join(line.strip() for line in lines[first : first + 3])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a mutant."""

    report: str
    """The check that reports it, or ""."""
    changes: bool
    """Whether its result is wrong in some order."""


def outcome_of(kernel: Kernel, code: bytes) -> Outcome:
    """Run a mutant under all checks, and without them in each order."""
    emulator.sanitize("all")
    report = reported_by(kernel.run(code))
    emulator.sanitize()
    try:
        changes = any(wrong_in(order, kernel, code) for order in ORDERS)
    finally:
        emulator.schedule(0)
    return Outcome(report=report, changes=changes)


def wrong_in(order: int, kernel: Kernel, code: bytes) -> bool:
    """Whether the code has wrong results, or none, in an order."""
    emulator.schedule(order)
    return bool(kernel.run(code))


def reported_by(problem: str) -> str:
    """The check that made a report, or ""."""
    return next((check for words, check in REPORTS.items() if words in problem), "")


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
    ok(
        hip().hipMemset(ctypes.c_void_p(address), 0, array.nbytes)
    )  # what nobody has written is reported
    copy[...] = array
    return copy


def triton_kernel(gpu: str, name: str, test: Callable[[], None]) -> Kernel:
    """One of the code objects that stand beside the tests."""

    def run(code: bytes) -> str:
        with triton_code(code), np.errstate(all="ignore"):
            try:
                test()
            except AssertionError as problem:
                return after_failure(DEVICES.index(gpu)) or str(problem) or "wrong"
        return ""

    code = (triton_kernels.FOLDER / gpu / f"{name}.hsaco").read_bytes()
    return Kernel(gpu=gpu, name=name, code=code, run=run, family="Triton")


def after_failure(device: int) -> str:
    """Why the device has failed, if it has; it works again."""
    text = emulator.fault(device)
    hip().hipSetDevice(device)
    hip().hipDeviceReset()
    return text


Wanted = Callable[[str, str], bool]
"""Whether to study a kernel, by GPU and name."""


_SINGLE = {"sort_i32": "sort", "norm_f16": "norm", "histogram": "histogram"}
"""The tests of these take a GPU alone."""


def triton_all(wanted: Wanted) -> Iterator[Kernel]:
    """The kernels of Triton, whose tests compare them with NumPy."""
    for gpu in test_triton.GPUS:
        for name in triton_kernels.MADE[gpu]:
            if not wanted(gpu, name):
                continue
            test = getattr(test_triton, f"test_{_SINGLE.get(name, name.partition('_')[0])}")
            call = (gpu,) if name in _SINGLE else (gpu, name)
            yield triton_kernel(gpu, name, partial(test, *call))


def ck_all(wanted: Wanted) -> Iterator[Kernel]:
    """Kernels that cklang's ops launch: CK Tile's products and attention, and kernels of rows."""
    for gpu in DEVICES:
        for name, op in OPS.items():
            for code in op.codes(gpu) if wanted(gpu, f"ck {name}") else ():
                run = run_op(op, gpu, code)
                yield Kernel(gpu=gpu, name=f"ck {name}", code=code, run=run, family="cklang")


Counts = Counter[tuple[str, str, str, bool]]
"""Mutants by family of kernels, mistake, reporting check and whether a result changes."""


def study(kernel: Kernel, arguments: argparse.Namespace) -> Counts:
    """Plant mistakes in one kernel."""
    rng, counts = random.Random(f"{arguments.seed} {kernel.gpu} {kernel.name}"), Counts()
    ran = executed(kernel)
    for mistake in MISTAKES:
        places = sites(kernel, mistake, ran) if kernel.gpu not in mistake.not_on else []
        for at in rng.sample(places, min(arguments.mutants, len(places))):
            code = mutant(kernel, mistake, at)
            if code == kernel.code:
                continue
            outcome = outcome_of(kernel, code)
            counts[kernel.family, mistake.name, outcome.report, outcome.changes] += 1
            if arguments.verbose and outcome.changes and not outcome.report:
                what = described(kernel, at)
                print(f"{mistake.name}: {kernel.gpu} {kernel.name}: {what}", flush=True)
    return counts


def apart(work: Callable[[], Counts]) -> Counts | None:
    """Do work in a process of its own, which may be lost; None if it was."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(pickle.dumps(work()))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(answer) if answer else None


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
    emulator.timeout(SECONDS)

    def wanted(gpu: str, name: str) -> bool:
        right_name = not arguments.only or any(word in name for word in arguments.only)
        return right_name and (not arguments.gpu or gpu in arguments.gpu)

    kernels = [*triton_all(wanted), *ck_all(wanted)]
    if arguments.cost:
        print(costs(kernels))
        return
    clean = [kernel for kernel in kernels if is_clean(kernel)]
    print(f"{len(kernels)} kernels run as they are; reported: {len(kernels) - len(clean)}\n")
    counts, lost = Counts(), 0
    for kernel in clean:
        of_kernel = apart(partial(study, kernel, arguments))
        if of_kernel is None:
            lost += 1
            print(f"{kernel.gpu} {kernel.name}: a mutant ended the process", flush=True)
        else:
            counts += of_kernel
    if lost:
        print(f"{lost} kernels are not counted: a mutant wrote into memory of this process\n")
    for family in sorted({key[0] for key in counts}):
        print(f"\n{family}\n\n{table(counts, {family})}")
    print(f"\nAll\n\n{table(counts, {key[0] for key in counts})}")


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


def is_clean(kernel: Kernel) -> bool:
    """Whether a kernel as it is has no report and is right in each order; else print why not."""
    emulator.sanitize("all")
    problems = [kernel.run(kernel.code)]
    emulator.sanitize()
    for order in ORDERS:
        emulator.schedule(order)
        problems.append(kernel.run(kernel.code))
    emulator.schedule(0)
    text = next((problem for problem in problems if problem), "")
    if text:
        print(f"{kernel.gpu} {kernel.name}, order {problems.index(text) - 1}: {text}", flush=True)
    return not text


def table(counts: Counts, families: set[str]) -> str:
    """The table in Markdown."""
    checks = list(dict.fromkeys(REPORTS.values()))
    heads = [
        "mistake",
        "mutants",
        "change a result",
        "of these reported",
        "%",
        *checks,
        "reported besides",
    ]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for mistake in MISTAKES:
        rows = {
            key: n for key, n in counts.items() if key[0] in families and key[1] == mistake.name
        }
        changing = {key[2]: 0 for key in rows}
        for (_, _, check, changes), n in rows.items():
            changing[check] += n * changes
        total, reported = sum(changing.values()), sum(changing.values()) - changing.get("", 0)
        besides = sum(n for (_, _, check, changes), n in rows.items() if check and not changes)
        share = f"{100 * reported / total:.1f}" if total else ""
        by_check = [changing.get(check, 0) for check in checks]
        cells = [mistake.name, sum(rows.values()), total, reported, share, *by_check, besides]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    try:
        main()
    except CkError as problem:
        sys.exit(str(problem))
