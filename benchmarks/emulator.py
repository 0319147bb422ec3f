# SPDX-License-Identifier: MIT
"""The emulator's speed on this machine: products, attention, copies, small kernels, its own build.

    python benchmarks/emulator.py [--only NAME ...] [--quick] [--profile]
    python benchmarks/emulator.py --scaling [--only NAME ...] [--pairs N]
    python benchmarks/emulator.py --against TREE [--only NAME ...] [--pairs N]

Prints a Markdown table (docs/benchmarks.md has its numbers); all of it takes a few minutes. Run it
on an idle machine. ``--quick`` measures each thing once, to see that it runs; ``--profile`` prints
behind each kernel what it executes, by operation. ``--scaling`` runs products and plain kernels on
one core and on all, in turn, and prints the processor time of all threads beside the time that
passes: what cores share costs processor time, also on a machine with other work. ``--against`` does
that for the matrix kernels with the emulator of another tree and with this one's, a process each,
in turn: of each the least of 20 runs.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import ml_dtypes
import numpy as np
from plain_kernels import CASES, measured, run, spread
from programs import flops, half, linear
from rich.console import Console
from rich.table import Table

from cklang import emulator, knobs
from cklang.families.gemm.key import Algorithm
from cklang.toolchain.compilers import find_toolchain, run_tool

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.assembly import Module, assembled, hip, ok
from tests.support.ck_units import Attention
from tests.support.triton_kernels import run as run_triton

#: A tile whose warps multiply 32 × 32 × 8 at a time: what the selection prefers for a large GPU
#: is a small tile, which says less of the engine and more of what surrounds it.
TILE = Algorithm(
    tile=(128, 128, 32),
    warps=(2, 2, 1),
    warp_tile=(32, 32, 16),
    vector_a=8,
    vector_b=8,
    vector_e=8,
)
COPY_BYTES = 64 << 20
#: Each lane moves 64 bytes; the workgroup's number is in s2.
_COPY = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  s_lshl_b32 s2, s2, 14
  v_lshl_add_u32 v1, v0, 4, s2
  s_waitcnt lgkmcnt(0)
  global_load_dwordx4 v[4:7], v1, s[4:5]
  v_add_u32 v2, 0x1000, v1
  global_load_dwordx4 v[8:11], v2, s[4:5]
  v_add_u32 v3, 0x1000, v2
  global_load_dwordx4 v[12:15], v3, s[4:5]
  v_add_u32 v20, 0x1000, v3
  global_load_dwordx4 v[16:19], v20, s[4:5]
  s_waitcnt vmcnt(0)
  global_store_dwordx4 v1, v[4:7], s[6:7]
  global_store_dwordx4 v2, v[8:11], s[6:7]
  global_store_dwordx4 v3, v[12:15], s[6:7]
  global_store_dwordx4 v20, v[16:19], s[6:7]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measurement; ``more`` says whether larger is better than ``least``."""

    what: str
    value: float
    unit: str
    least: float | None = None
    more: bool = False
    note: str = ""

    def line(self) -> str:
        """The row in Markdown, with ``pass`` or ``FAIL`` if there is a limit."""
        limit = verdict = ""
        if self.least is not None:
            sign = 1 if self.more else -1
            limit = f"{'≥' if self.more else '≤'} {self.least:g}"
            verdict = "pass" if sign * self.value >= sign * self.least else "FAIL"
        cells = (self.what, f"{self.value:.3g} {self.unit}", limit, verdict, self.note)
        return f"| {' | '.join(cells)} |"


def best(runs: int, work: Callable[[], object]) -> float:
    """Return the shortest of some runs, in seconds; of one if ``--quick`` was given."""
    shortest = float("inf")
    for _ in range(1 if "--quick" in sys.argv else runs):
        start = time.perf_counter()
        work()
        shortest = min(shortest, time.perf_counter() - start)
    return shortest


def product() -> Row:
    """Multiply 1024 × 1024 f16 matrices with a CK Tile kernel on gfx942."""
    rng = np.random.default_rng(0)
    x, w = half(rng, 1024, 1024), half(rng, 1024, 1024)
    tiled = linear.using(TILE)
    tiled(x, w)
    speed = flops(1024, 1024, 1024) / best(10, lambda: tiled(x, w)) / 1e9
    return Row(what="gemm", value=speed, unit="GFLOP/s", least=40, more=True, note="aim 100")


def numpy_product() -> Row:
    """The same in f32 by NumPy on this CPU."""
    x, w = np.random.default_rng(0).normal(size=(2, 1024, 1024)).astype(np.float32)
    speed = flops(1024, 1024, 1024) / best(10, lambda: x @ w) / 1e9
    return Row(what="numpy f32 gemm", value=speed, unit="GFLOP/s")


def _attention() -> Callable[[], object]:
    with tempfile.TemporaryDirectory() as folder:
        unit = Attention("gfx942", Path(folder), "half_t", masked=False)
    q, k, v = np.random.default_rng(0).normal(size=(3, 1, 8, 1024, 128)).astype(np.float16)
    return lambda: unit.run(q, k, v, causal=False)


def attention() -> Row:
    """Run CK Tile's forward attention, 1 × 8 heads × 1024 × 128 in f16, on gfx942."""
    seconds = best(5, _attention())
    note = f"{4 * 8 * 1024 * 1024 * 128 / seconds / 1e9:.0f} GFLOP/s"
    return Row(what="attention", value=seconds, unit="s", least=2, note=note)


def _fp8() -> Callable[[], object]:
    """What runs Triton's fp8 product of 1024 × 1024 matrices on gfx950, in tiles of 64 × 64."""
    rng, size = np.random.default_rng(0), 1024
    a, b = (rng.normal(size=(size, size)).astype(ml_dtypes.float8_e4m3fn) for _ in range(2))
    c, grid = np.zeros((size, size), np.float32), (size // 64, size // 64)
    launch = partial(run_triton, "gfx950", "gemm_fp8", grid, a, b, c, size, size, size)
    launch()
    if not np.allclose(c, a.astype(np.float32) @ b.astype(np.float32), atol=1e-2):
        raise SystemExit("the product is wrong")
    return launch


def fp8() -> Row:
    """Multiply fp8 matrices with the kernel that Triton compiled."""
    seconds = best(10, _fp8())
    note = f"{flops(1024, 1024, 1024) / seconds / 1e9:.0f} GFLOP/s"
    return Row(what="fp8 gemm, Triton, gfx950", value=seconds, unit="s", least=0.06, note=note)


def _copied() -> tuple[np.ndarray, np.ndarray]:
    """Memory to copy from and to, all of it touched; the second begins at a line of the cache."""
    source = np.random.default_rng(0).integers(0, 2**32, COPY_BYTES // 4, dtype=np.uint32)
    room = np.ones(COPY_BYTES // 4 + 16, np.uint32)
    first = -room.ctypes.data % 64 // 4
    return source, room[first : first + source.size]


def copy() -> Row:
    """Copy 64 MB with wide loads and stores."""
    module = assembled({"copy": _COPY})
    source, target = _copied()
    grid = COPY_BYTES // (256 * 64)
    processor = float("inf")

    def once() -> None:
        nonlocal processor
        before = time.process_time()
        module.launch("copy", source, target, grid=grid, block=256)
        processor = min(processor, time.process_time() - before)

    seconds = best(20, once)
    if not np.array_equal(source, target):
        raise SystemExit("the copy is wrong")
    note = f"read and written, each; {1e3 * processor:.1f} ms of the processors"
    return Row(what="copy", value=COPY_BYTES / seconds / 1e9, unit="GB/s", note=note)


def memory(streaming: bool) -> Callable[[], Row]:
    """Measure the same copy by a thread of each core: what this machine's memory gives now."""

    def measure() -> Row:
        with tempfile.TemporaryDirectory() as folder:
            copied = _compiled("memory", Path(folder)).copy_memory
        copied.restype = ctypes.c_double
        copied.argtypes = (*[ctypes.c_void_p] * 2, ctypes.c_size_t, ctypes.c_int, ctypes.c_bool)
        source, target = _copied()
        threads = min(os.cpu_count() or 1, 64)
        call = partial(copied, target.ctypes.data, source.ctypes.data, COPY_BYTES)
        seconds = min(call(threads, streaming) for _ in range(20))
        if seconds <= 0 or not np.array_equal(source, target):
            raise SystemExit("the copy is wrong")
        what = f"copy by {'streaming stores' if streaming else 'memcpy'}, {threads} threads"
        return Row(what=what, value=COPY_BYTES / seconds / 1e9, unit="GB/s", note="the bound")

    return measure


def plain(name: str) -> Callable[[], Row]:
    """Measure a plain HIP kernel of benchmarks/data/plain_kernels.hip."""

    def measure() -> Row:
        case = CASES[name]()
        run(name, case)  # the first launch translates
        seconds = best(5, lambda: run(name, case))
        processor = measured(name, case)[0]
        if not case.correct():
            raise SystemExit(f"{name} is wrong")
        rate = emulator.stats(0).instructions / seconds / 1e6
        note = f"{rate:.0f} M wave instructions/s, {1e3 * processor:.0f} ms of the processors"
        return Row(what=name, value=case.work / seconds / 1e9, unit=case.unit, note=note)

    return measure


@dataclass(frozen=True, slots=True)
class Small:
    """A kernel that does next to nothing, and the arguments of its launches."""

    module: Module
    words: ctypes.Array[ctypes.c_uint64]
    size: ctypes.c_size_t
    extra: ctypes.Array[ctypes.c_void_p]

    @classmethod
    def loaded(cls) -> Small:
        """The kernel, assembled and loaded."""
        module = assembled({"small": "  s_nop 0\n"})
        words, size = (ctypes.c_uint64 * 4)(), ctypes.c_size_t(32)
        addresses = (1, ctypes.addressof(words), 2, ctypes.addressof(size), 3)
        return cls(module, words, size, (ctypes.c_void_p * 5)(*addresses))


def latency() -> Row:
    """Launch one wave, and wait for it, with all that a test does around it."""
    small, data, launches = Small.loaded(), np.zeros(64, np.uint32), 200

    def many() -> None:
        for _ in range(launches):
            small.module.launch("small", data, data)

    seconds = best(5, many) / launches
    note = "by tests' Module.launch: four calls of hip-python, arguments, checks"
    return Row(what="launch to done", value=seconds * 1e6, unit="µs", least=50, note=note)


def latency_by_name() -> Row:
    """Do the same four calls of hip-python, and nothing else."""
    small, api, launches = Small.loaded(), hip(), 200
    module, extra, done = small.module.handle, small.extra, api.hipError_t.hipSuccess

    def many() -> None:
        for _ in range(launches):
            api.hipSetDevice(0)
            function = api.hipModuleGetFunction(module, b"small")[1]
            api.hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, None, None, extra)
            if api.hipDeviceSynchronize()[0] != done:
                raise SystemExit(emulator.last_error())

    seconds = best(20, many) / launches
    what = "launch to done by hip-python, four calls"
    return Row(what=what, value=seconds * 1e6, unit="µs", least=10)


def latency_of_launch() -> Row:
    """Launch a kernel that is at hand, and wait for it: two calls of hip-python."""
    small, api, launches = Small.loaded(), hip(), 200
    function, extra = ok(api.hipModuleGetFunction(small.module.handle, b"small")), small.extra

    def many() -> None:
        for _ in range(launches):
            api.hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, None, None, extra)
            api.hipDeviceSynchronize()

    seconds = best(20, many) / launches
    what = "launch to done by hip-python, two calls"
    return Row(what=what, value=seconds * 1e6, unit="µs", least=10)


def _compiled(name: str, folder: Path) -> ctypes.CDLL:
    """Compile a file of benchmarks/data, and load it."""
    toolchain, source = find_toolchain(), Path(__file__).parent / "data" / f"{name}.cpp"
    item, library = folder / f"{name}.o", folder / f"{name}.so"
    compiled = toolchain.compile_cxx(source, item, flags=("-O2", "-mavx2"))
    for command in (compiled, toolchain.link_plain([item], library)):
        run_tool(command, log=folder / f"{name}.log", environment=toolchain.environment())
    return ctypes.CDLL(str(library))


def _addresses(*names: str) -> list[ctypes.c_void_p]:
    """Where functions of the emulator are."""
    library = emulator.load()
    return [ctypes.cast(getattr(library, name), ctypes.c_void_p) for name in names]


def _from_c(what: str, note: str, seconds: Callable[[ctypes.CDLL, Small], float]) -> Row:
    """The least of what a loop in C measures some times."""
    small = Small.loaded()
    with tempfile.TemporaryDirectory() as folder:
        loop = _compiled("launches", Path(folder))
    loop.launches.restype = loop.launches_by_name.restype = ctypes.c_double
    times = [seconds(loop, small) for _ in range(1 if "--quick" in sys.argv else 20)]
    if min(times) < 0:
        raise SystemExit(emulator.last_error())
    return Row(what=what, value=1e6 * min(times), unit="µs", least=10, note=note)


def latency_by_name_from_c() -> Row:
    """Measure the same four calls from C: what hip-python adds is the difference."""
    calls = _addresses(
        "hipSetDevice", "hipModuleGetFunction", "hipModuleLaunchKernel", "hipDeviceSynchronize"
    )

    def seconds(loop: ctypes.CDLL, small: Small) -> float:
        module = ctypes.c_void_p(int(small.module.handle))
        found: float = loop.launches_by_name(*calls, module, b"small", small.extra, 500)
        return found

    return _from_c("launch to done from C, four calls", "the same calls", seconds)


def latency_from_c(groups: int) -> Row:
    """Measure the two calls that a launch takes, from C, with so many workgroups."""
    calls = _addresses("hipModuleLaunchKernel", "hipDeviceSynchronize")

    def seconds(loop: ctypes.CDLL, small: Small) -> float:
        function = ok(hip().hipModuleGetFunction(small.module.handle, b"small"))
        kernel = ctypes.c_void_p(int(function))
        found: float = loop.launches(*calls, kernel, groups, small.extra, 500)
        return found

    what = f"launch to done from C, {groups} workgroup{'s' if groups > 1 else ''}"
    return _from_c(what, "two calls", seconds)


def build() -> Row:
    """Compile the library with an empty cache."""
    from cklang.emulator.engine.build import library_path

    with tempfile.TemporaryDirectory() as folder, knobs.scope(CKLANG_CACHE_DIR=folder):
        start = time.perf_counter()
        library_path()
        seconds = time.perf_counter() - start
    return Row(what="build", value=seconds, unit="s", least=90, note="once a machine")


BENCHMARKS: dict[str, tuple[Callable[[], Row], ...]] = {
    "gemm": (product, numpy_product),
    "attention": (attention,),
    "fp8": (fp8,),
    "copy": (copy, memory(streaming=False), memory(streaming=True)),
    "plain": tuple(plain(name) for name in CASES),
    "latency": (
        *(latency, latency_by_name, latency_of_launch, latency_by_name_from_c),
        *(partial(latency_from_c, 1), partial(latency_from_c, 4)),
    ),
    "build": (build,),
}


def _multiply(size: int) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    x, w, tiled = half(rng, size, size), half(rng, size, size), linear.using(TILE)
    return lambda: tiled(x, w)


def _launch(name: str) -> Callable[[], object]:
    case = CASES[name]()
    return lambda: run(name, case)


SCALED: dict[str, Callable[[], Callable[[], object]]] = {
    "gemm": partial(_multiply, 1024),
    "gemm2048": partial(_multiply, 2048),
    "attention": _attention,
    "fp8": _fp8,
    **{name: partial(_launch, name) for name in CASES},
}
"""What ``--scaling`` runs."""


def scaling(names: list[str], pairs: int) -> None:
    """Print what runs take on one core, each in its turn, and on all."""
    every = os.sched_getaffinity(0)
    print(f"| kernel | CPU ms, one core | CPU ms, {len(every)} cores | wall ms, one | all | |")
    print("|---|---|---|---|---|---|")
    for name in names:
        work = SCALED[name]()
        work()
        found: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
        for turn in range(2 * pairs):
            alone = turn % 2 == 0
            core = sorted(every)[turn // 2 % len(every)]
            os.sched_setaffinity(0, {core} if alone else every)
            processor, wall = time.process_time(), time.perf_counter()
            work()
            wall, processor = time.perf_counter() - wall, time.process_time() - processor
            found[alone].append((1e3 * processor, 1e3 * wall))
        os.sched_setaffinity(0, every)
        columns = [[pair[n] for pair in found[alone]] for n in range(2) for alone in (True, False)]
        ratio = statistics.median(columns[2]) / statistics.median(columns[3])
        cells = (name, *(spread(column, ".1f") for column in columns), f"{ratio:.2f} ×")
        print(f"| {' | '.join(cells)} |", flush=True)


def processor(names: list[str], runs: int) -> None:
    """Print the processor time of each of some runs, in milliseconds, as JSON."""
    found: dict[str, list[float]] = {}
    for name in names:
        work = SCALED[name]()
        for _ in range(runs + 1):  # the first one translates
            start = time.process_time()
            work()
            found.setdefault(name, []).append(1e3 * (time.process_time() - start))
    print(json.dumps({name: times[1:] for name, times in found.items()}))


def against(tree: str, names: list[str], pairs: int) -> None:
    """Print the processor time of runs in another tree and in this one, in turn."""
    here = str(Path(__file__).parents[1])
    least: dict[str, dict[str, list[float]]] = {tree: {}, here: {}}
    for _ in range(pairs):
        for of, found in least.items():
            command = (sys.executable, __file__, "--processor", "--only", *names)
            environment = os.environ | {"PYTHONPATH": of}
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
            for name, times in json.loads(done.stdout.splitlines()[-1]).items():
                found.setdefault(name, []).append(min(times))
    print("| kernel | before, CPU ms | after, CPU ms | after / before |\n|---|---|---|---|")
    for name in names:
        before, after = least[tree][name], least[here][name]
        ratio = statistics.median(a / b for a, b in zip(after, before, strict=True))
        print(f"| {name} | {spread(before, '.1f')} | {spread(after, '.1f')} | {ratio:.2f} |")


def profile() -> Table:
    """What the last launch on gfx942 executed, most frequent first."""
    counts = emulator.fidelity(0)
    total = sum(counts.values())
    table = Table("operation", "wave instructions", "share")
    for name, count in sorted(counts.items(), key=lambda item: -item[1])[:25]:
        table.add_row(name, f"{count:,}", f"{count / total:.1%}")
    stats = emulator.stats(0)
    each = stats.nanoseconds / max(stats.instructions, 1)
    table.title = f"{stats.instructions:,} instructions, {each:.1f} ns each"
    return table


def main() -> None:
    """Measure what the command line names, or everything, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", nargs="+", choices={*BENCHMARKS, *SCALED})
    parser.add_argument("--scaling", action="store_true", help="one core and all, in turn")
    parser.add_argument("--against", metavar="TREE", help="compare processor times with TREE's")
    parser.add_argument("--processor", action="store_true", help="processor times, as JSON")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="measure once")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    if options.against is not None:
        against(options.against, options.only or ["gemm", "attention", "fp8"], options.pairs)
        return
    emulator.load()
    if options.processor:
        processor(options.only or list(SCALED), 20)
        return
    if options.scaling:
        scaling(options.only or list(SCALED), options.pairs)
        return
    print(f"| what ({os.cpu_count()} cores) | value | limit | | note |\n|---|---|---|---|---|")
    for name in options.only or BENCHMARKS:
        for measure in BENCHMARKS.get(name, ()):
            row = measure()
            print(row.line(), flush=True)
            if options.profile and measure in {product, attention, copy}:
                Console(width=100, stderr=True).print(profile())


if __name__ == "__main__":
    main()
