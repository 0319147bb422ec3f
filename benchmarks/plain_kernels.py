# SPDX-License-Identifier: MIT
"""Plain HIP kernels on the emulator, interpreted and translated in turn.

    python benchmarks/plain_kernels.py [--pairs N] [--only NAME ...]

Each round runs a kernel once with ``emulator.translation("off")`` and once with ``"hot"`` for each
width of vectors that the CPU has. Printed are medians and ranges of the processor time of all
threads, which other processes on the machine disturb less than the time that passes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from cklang import emulator
from cklang.emulator.hipcc import driver, fat_binary
from cklang.errors import CkValueError

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.assembly import Module

SOURCE = Path(__file__).parent / "data" / "plain_kernels.hip"
BLOCK = 256


class Number:
    """A number as an argument of a kernel, in place of an array's address."""

    def __init__(self, value: int) -> None:
        self.ctypes = type("Value", (), {"data": value})


@dataclass(frozen=True, slots=True)
class Case:
    """A launch: its arrays and number, its grid, and the operations that ``unit`` counts."""

    arrays: tuple[np.ndarray, ...]
    number: int
    grid: int
    work: float
    unit: str
    correct: Callable[[], bool]


def matmul(size: int = 512) -> Case:
    """Tiles of 16 × 16 in LDS, as in rocm-examples."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, size, size)).astype(np.float32)
    c = np.zeros_like(a)
    grid = (size // 16) ** 2

    def correct() -> bool:
        return np.allclose(c, a @ b, atol=1e-2)

    return Case((a, b, c), size, grid, 2 * size**3, "GFLOP/s", correct)


def nbody(count: int = 4096) -> Case:
    """All bodies attract all; 20 operations a pair, as usually counted."""
    bodies = np.random.default_rng(0).normal(size=(count, 4)).astype(np.float32)
    result = np.zeros_like(bodies)

    def correct() -> bool:
        apart = bodies[None, :, :3] - bodies[:64, None, :3]
        inverse = 1 / np.sqrt((apart**2).sum(-1) + 1e-3)
        pull = (bodies[None, :, 3] * inverse**3)[..., None]
        return np.allclose((apart * pull).sum(1), result[:64, :3], atol=0.1)

    grid = count // BLOCK
    return Case((bodies, result), count, grid, 20 * count**2, "GFLOP/s", correct)


def histogram(size: int = 16 << 20) -> Case:
    """Bytes counted by atomics in LDS."""
    words = np.random.default_rng(0).integers(0, 2**32, size // 4, dtype=np.uint32)
    counts = np.zeros(256, np.uint32)
    expected = np.bincount(words.view(np.uint8), minlength=256)

    def correct() -> bool:
        right = bool(((counts % expected) == 0).all() and counts.any())
        counts[:] = 0
        return right

    return Case((words, counts), words.size, 1024, size, "GB/s", correct)


def stencil(size: int = 2048) -> Case:
    """The mean of five neighbours."""
    source = np.random.default_rng(0).normal(size=(size, size)).astype(np.float32)
    target = np.zeros_like(source)

    def correct() -> bool:
        across = source[1:-1, :-2] + source[1:-1, 2:] + source[1:-1, 1:-1]
        mean = 0.2 * (across + source[:-2, 1:-1] + source[2:, 1:-1])
        return np.allclose(target[1:-1, 1:-1], mean, atol=1e-5)

    grid = size // 64 * (size // 4)
    return Case((source, target), size, grid, 5 * size**2, "GFLOP/s", correct)


def reduction(size: int = 4 << 20) -> Case:
    """A sum, by a tree in LDS."""
    numbers = np.random.default_rng(0).normal(size=size).astype(np.float32)
    sums = np.zeros(1024, np.float32)

    def correct() -> bool:
        return abs(float(sums.sum()) - float(numbers.sum(dtype=np.float64))) < 10

    return Case((numbers, sums), size, 1024, 4 * size, "GB/s", correct)


CASES: dict[str, Callable[[], Case]] = {
    "matmul": matmul,
    "nbody": nbody,
    "histogram": histogram,
    "stencil": stencil,
    "reduction": reduction,
}


@cache
def module() -> Module:
    """Return the kernels, compiled for gfx942."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "plain.hipfb"
        words = ["--genco", "--offload-arch=gfx942", "-O3", str(SOURCE), "-o", str(output)]
        driver.build(words, print)
        return Module(fat_binary.entries(output.read_bytes())["gfx942"])


def run(name: str, case: Case) -> None:
    """Launch a kernel once and wait for it."""
    number = Number(case.number)
    status = module().launch(name, *case.arrays, number, grid=case.grid, block=BLOCK)  # type: ignore[arg-type]
    if status != "hipSuccess":
        raise SystemExit(emulator.last_error())


def measured(name: str, case: Case) -> tuple[float, float]:
    """Return seconds of the processors and seconds that pass, of one launch."""
    processor, wall = time.process_time(), time.perf_counter()
    run(name, case)
    return time.process_time() - processor, time.perf_counter() - wall


def spread(values: list[float], digits: str) -> str:
    """Return the median and the range."""
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:{digits}} ({low:{digits}}-{high:{digits}})"


def _widths() -> tuple[int, ...]:
    """Bits of the vectors that the CPU has, the widest first."""
    try:
        emulator.vector_width(512)
    except CkValueError:
        return (256,)
    return (512, 256)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    options = parser.parse_args()
    widths = _widths()
    ways = (("off", widths[0]), *(("hot", bits) for bits in widths))
    heads = [f"{bits} bits, CPU ms | | speed of a core" for bits in widths]
    print(f"| kernel | interpreted, CPU ms | {' | '.join(heads)} |")
    print("|---" * (2 + 3 * len(widths)) + "|")
    for name in options.only:
        case = CASES[name]()
        run(name, case)
        times: dict[tuple[str, int], list[float]] = {way: [] for way in ways}
        for _ in range(options.pairs):
            for (what, bits), seconds in times.items():
                emulator.translation(what)
                emulator.vector_width(bits)
                seconds.append(measured(name, case)[0])
        if not case.correct():
            raise SystemExit(f"{name} is wrong")
        middle = {way: statistics.median(seconds) for way, seconds in times.items()}
        cells = [name]
        for way, seconds in times.items():
            cells.append(spread([1e3 * value for value in seconds], ".1f"))
            if way[0] != "off":
                cells.append(f"{middle[ways[0]] / middle[way]:.1f} ×")
                cells.append(f"{case.work / middle[way] / 1e9:.2f} {case.unit}")
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
