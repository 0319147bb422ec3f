# SPDX-License-Identifier: MIT
"""Compare the clock's times of CK Tile's products with times on an MI300X and an MI355X.

Reads ``silicon/ck_tile_gemm_16bit_gfx942*.csv`` (f16, one kernel a shape),
``silicon/ck_tile_gemm_fp8_gfx950*.csv`` (of each shape the quickest kernel, and the one that AMD's
model takes) and, with ``--gpu gfx942_tile64``, ``silicon/ck_tile_gemm_f16_gfx942.csv`` (f16 on an
MI300X, 16 kernels of one tile, three shapes) of ``CKLANG_DATA_DIR``. A kernel is upstream's own
unit (``upstream_unit.py``), as CK Tile's tile engine writes it, for the tiling that the table
names, built by the compiler that cklang uses; persistent ones are left out. Prints Markdown, with
the times of the analytic cost model beside, and once more at the clock that power leaves. Each
kernel is held out: the overhead of a launch is that which fits the times of its GPU's other kernels
below 10 µs.

clang 22 waits for each masked load of the pipeline mem before it issues the next one, as clang 20,
of which ROCm 7's compiler is made, does not; so instructions are ordered from the end of each block
here, which is nearest to what clang 20 makes, unless ``--own-order`` is given. ``CKLANG_CLANG``
names another compiler.

python benchmarks/clock_products.py [--gpu gfx950|gfx942_tile64] [--only 3A,3B] [--keep folder]
    [--points] [--own-order] [--unpadded] [--what-if rate_l2=1640]
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import upstream_unit
from data.silicon import folder
from hip_programs import hip_module, ok

import cklang as ck
from cklang.arch import arch
from cklang.device.device import open_device
from cklang.emulator.clock.constants import constants_of
from cklang.emulator.clock.kernel import launch_detail
from cklang.emulator.clock.power import board_of, us_under_load
from cklang.emulator.engine.recording import RecordedLaunch, timing
from cklang.emulator.hipcc import driver
from cklang.errors import CkError
from cklang.families.gemm.key import Algorithm, EpilogueKind, Pipeline, Scheduler
from cklang.toolchain.compilers import find_ck_tree

_SMALL = 10.0
"""µs, below which a time is mostly that of the launch."""
_MOST_BYTES = 1 << 30
_PIPELINES = {"mem": Pipeline.MEM, "compv3": Pipeline.COMPV3, "compv4": Pipeline.COMPV4}
_FLAGS = ("-std=c++20", "-DNDEBUG", "-w", "-O3", "-mllvm", "-enable-noalias-to-md-conversion=0")
_ORDER = ("-mllvm", "-misched-prera-direction=bottomup")
_UNIT = """#include <stdexcept>
#include "ck_tile/host.hpp"
#include "{header}"
extern "C" int run(int m, int n, int k, const void* a, const void* b, void* e)
{{
    const ck_tile::GemmHostArgs args(a, b, e, 1, m, n, k, k, k, n);
    try {{ SelectedKernel::launch(args, ck_tile::stream_config{{nullptr, false}}); }}
    catch(const std::exception&) {{ return 1; }}
    return 0;
}}
"""
_SPLIT = ("if(args.k_batch == 1) {", "if constexpr(true) {")
"""Leaves out the kernels that share K among workgroups, none of which was timed."""

M, N, K = ck.dims("M N K")
Extents = tuple[int, int, int]


@ck.op
def product_of_16_bits(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    """Multiply as the table's kernels do."""
    return x @ w.T


@ck.op
def product_of_8_bits(x: ck.fp8[M, K], w: ck.fp8[N, K]) -> ck.f16[M, N]:
    """Multiply as the table's kernels do."""
    return x @ w.T


@dataclass(frozen=True, slots=True)
class Table:
    """Published times of a GPU."""

    gpu: str
    dtype: str
    """As upstream's generator names it."""
    op: Any
    file: str
    code: str
    """The column of a kernel's name in the list of kernels."""
    columns: tuple[str, str, str]
    """Of tile, warps and warp tile; the first one in three columns if it ends in an underscore."""
    pads: str
    """Of M, N and K. Those of the 16-bit kernels are the defaults of the dispatcher's Python
    configuration, by which the sweep built them; rows with N = 80 confirm it. The names of the
    kernels of one tile say that they have none."""
    points: Callable[[dict[str, str]], Sequence[tuple[str, float]]]
    """From a row to the kernels that were timed, and µs."""
    default: str
    legend: str = "_kernels"
    """Behind the file's name, of the list of kernels; empty: each row says which kernel it is."""
    overhead: float | None = None
    """µs of a launch, where none is so short that they could be fitted: those that the other table
    of the same dispatcher prints."""


def _flops(row: dict[str, str]) -> float:
    return 2 * int(row["m"]) * int(row["n"]) * int(row["k"])


def _points_16(row: dict[str, str]) -> list[tuple[str, float]]:
    return [(row["kernel"], float(row["us"]))] if row["dtype"] == "fp16" else []


def _points_8(row: dict[str, str]) -> list[tuple[str, float]]:
    named = {row[f"{who}_kernel"]: float(row[f"{who}_tflops"]) for who in ("pick", "oracle")}
    return [(name, _flops(row) / tflops / 1e6) for name, tflops in named.items()]


_WORDS = {"inter": "interwave", "intra": "intrawave"}


def _points_64(row: dict[str, str]) -> list[tuple[str, float]]:
    return [(_code_64(row), (float(row["us_run_a"]) + float(row["us_run_b"])) / 2)]


def _code_64(row: dict[str, str]) -> str:
    return "_".join(row[name] for name in ("waves", "pipeline", "scheduler", "epilogue", "flag4"))


def _kernel_64(row: dict[str, str]) -> dict[str, str]:
    """Return a kernel of the table whose kernels have one tile, as lists of kernels have it."""
    return {
        **row,
        "kernel": _code_64(row),
        "tile": "64x64x64",
        "waves": f"{row['waves']}x1",
        "warp_tile": "16x16x16",
        "scheduler": _WORDS[row["scheduler"]],
    }


_KERNELS_64 = ",".join(
    f"{waves}_{pipeline}_{epilogue}_0"
    for waves in ("2x2", "4x1")
    for pipeline in ("compv3_intra", "compv4_intra", "mem_intra", "mem_inter")
    for epilogue in ("cshuffle", "default")
)

TABLES = {
    "gfx942_tile64": Table(
        "gfx942",
        "fp16",
        product_of_16_bits,
        "ck_tile_gemm_f16_gfx942",
        "kernel",
        ("tile", "waves", "warp_tile"),
        "False_False_False",
        _points_64,
        _KERNELS_64,
        legend="",
        overhead=1.6,
    ),
    "gfx942": Table(
        "gfx942",
        "fp16",
        product_of_16_bits,
        "ck_tile_gemm_16bit_gfx942",
        "kernel",
        ("tile_", "waves_mnk", "warp_tile"),
        "True_True_True",
        _points_16,
        "s_64x64_k64_mem,s_64x64_k128_mem,s_64x64_k128_v3,s_64x64_k64_v4,s_64x64_k32_v4",
    ),
    "gfx950": Table(
        "gfx950",
        "fp8",
        product_of_8_bits,
        "ck_tile_gemm_fp8_gfx950",
        "code",
        ("tile_mnk", "waves_mnk", "warp_tile_mnk"),
        "False_False_False",
        _points_8,
        "3A,3B,3I,3L",
    ),
}


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel of a table."""

    algorithm: Algorithm
    tile: str
    """As upstream's generator takes them: tile, warps and warp tile,"""
    traits: str
    """and pipeline, epilogue, scheduler, padding, persistence."""


def kernels(path: Path, table: Table) -> dict[str, Kernel]:
    """Return the kernels of a table that are not persistent."""
    with (path / f"{table.file}{table.legend}.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row.get("flag4", "0") == "0"]
    if not table.legend:
        rows = [_kernel_64(row) for row in rows]
    return {row[table.code]: _kernel(row, table) for row in rows}


def _kernel(row: dict[str, str], table: Table) -> Kernel:
    shapes = [
        row[name] if not name.endswith("_") else "x".join(row[name + axis] for axis in "mnk")
        for name in table.columns
    ]
    tile, warps, warp_tile = (_triple(shape) for shape in shapes)
    bytes_of = ck.fp8.bytes if table.dtype == "fp8" else ck.f16.bytes
    words = (row["pipeline"], row["epilogue"], row["scheduler"], table.pads, "False")
    algorithm = Algorithm(
        tile=tile,
        warps=warps,
        warp_tile=warp_tile,
        pipeline=_PIPELINES[row["pipeline"]],
        scheduler=Scheduler(row["scheduler"]),
        epilogue=EpilogueKind(row["epilogue"]),
        double_buffer=row["pipeline"] == "compv4",
        vector_a=16 // bytes_of,
        vector_b=16 // bytes_of,
        vector_e=8,
    )
    return Kernel(algorithm, "_".join(shapes), "_".join(words))


def _triple(shape: str) -> Extents:
    m, n, k = map(int, shape.split("x"))
    return m, n, k


def points(path: Path, table: Table, name: str) -> list[tuple[Extents, float, str]]:
    """Return the extents, µs and run of a kernel's rows."""
    with (path / f"{table.file}.csv").open(newline="") as file:
        return [
            ((int(row["m"]), int(row["n"]), int(row["k"])), us, row.get("run", ""))
            for row in csv.DictReader(file)
            for kernel, us in table.points(row)
            if kernel == name
        ]


class Unit:
    """Upstream's unit of a kernel on the emulated GPU."""

    def __init__(self, table: Table, kernel: Kernel, where: Path, order: Sequence[str]) -> None:
        where.mkdir(parents=True, exist_ok=True)
        library = where / "unit.so"
        if not library.is_file():
            root = find_ck_tree().include.parent
            names = {"arch": table.gpu, "dtype": table.dtype}
            upstream_unit.generate(where, root, **names, tile=kernel.tile, traits=kernel.traits)
            (header,) = where.glob("*.hpp")
            header.write_text(header.read_text("utf-8").replace(*_SPLIT), "utf-8")
            source = where / "unit.hip"
            source.write_text(_UNIT.format(header=header.name), "utf-8")
            flags = (*_FLAGS, *order, f"--offload-arch={table.gpu}")
            words = (*flags, "-I", where, "-fPIC", "-shared")
            driver.build([*map(str, (*words, source)), "-o", str(library)], print)
        self._run = ctypes.CDLL(str(library)).run

    def record(self, extents: Extents, memory: Sequence[int]) -> RecordedLaunch | None:
        """Run one workgroup; return what it executed, or None if the kernel refuses the shape."""
        with timing(1, alone=True) as recording:
            refused = self._run(*extents, *map(ctypes.c_void_p, memory))
            ok(hip_module().hipDeviceSynchronize())
        return None if refused else recording.launches[0]


def model_us(table: Table, kernel: Kernel, extents: Extents) -> float:
    """Return the µs by the cost model; not a number if cklang has no such kernel."""
    m, n, k = extents
    dtype = np.dtype(ck.fp8.numpy if table.dtype == "fp8" else np.float16)
    x, w = (np.zeros(shape, dtype) for shape in ((m, k), (n, k)))
    try:
        op = table.op.using(kernel.algorithm)
        return op.summary(x, w, device=f"emu:{table.gpu}").microseconds or float("nan")
    except CkError:
        return float("nan")


Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Compared:
    """The points of all kernels."""

    kernel: npt.NDArray[np.str_]
    """[point]"""
    extents: tuple[tuple[int, ...], ...]
    gpu: Floats
    """µs on the GPU, [point]."""
    clock: Floats
    """µs by the clock, without the overhead of a launch, [point]."""
    model: Floats
    """µs by the cost model, [point]."""
    load: Floats | None = None
    """µs by the clock under load, as ``clock``; None where they are not compared."""
    run: npt.NDArray[np.str_] | None = None
    """Of the benchmark, [point]; None: of one run."""
    overhead: float | None = None
    """µs of a launch; None: fitted."""


def compare(
    path: Path,
    table: Table,
    names: Sequence[str],
    keep: Path,
    order: Sequence[str] = _ORDER,
    changed: Mapping[str, float] | None = None,
) -> Compared:
    """Time the points of some kernels.

    Args:
        path: The folder of the tables.
        table: One of them.
        names: Of kernels.
        keep: A folder for built kernels.
        order: What the compiler is told about schedules.
        changed: Numbers of the clock that are to have other values.
    """
    known, spec = kernels(path, table), arch(table.gpu)
    constants = constants_of(table.gpu).with_numbers(changed or {})
    board = board_of(constants)
    hip = hip_module()
    ok(hip.hipSetDevice(open_device(f"emu:{table.gpu}").index))
    memory = [int(ok(hip.hipMalloc(_MOST_BYTES))) for _ in range(3)]
    each = ck.fp8.bytes if table.dtype == "fp8" else ck.f16.bytes
    rows = []
    for name in names:
        unit = Unit(table, known[name], keep / f"{name}_{table.pads}", order)
        for extents, us, run in points(path, table, name):
            if (recorded := unit.record(extents, memory)) is None:
                continue
            m, n, k = extents
            footprint = each * (m + n) * k + ck.f16.bytes * m * n
            detail = launch_detail(recorded, spec, constants, footprint)
            clock = detail.cycles / spec.clock_hz * 1e6
            load = (us_under_load(detail, board) if board else None) or clock
            model = model_us(table, known[name], extents)
            rows.append((name, extents, us, clock, model, load, run))
    column, extents_of, *values, runs = zip(*rows, strict=True)
    gpu, times, models, loads = (np.array(each) for each in values)
    return Compared(
        np.array(column), extents_of, gpu, times, models, loads, np.array(runs), table.overhead
    )


def with_overhead(compared: Compared) -> Floats:
    """Return the clock's µs, [point], with the overhead that fits the other kernels best."""
    result = compared.clock.copy()
    if compared.overhead is not None:
        return result + compared.overhead
    for name in set(compared.kernel.tolist()):
        of = compared.kernel == name
        others = ~of & (compared.gpu < _SMALL)
        missing = compared.gpu[others] - compared.clock[others]
        result[of] += max(0.0, float(np.median(missing))) if others.any() else 0.0
    return result


def rows_of(compared: Compared) -> list[str]:
    """Return a row of Markdown for each kernel and range of times, and for all kernels."""
    lines = [
        "| kernels | points | clock: median error, median of sizes | cost model |",
        "|---|---|---|---|",
    ]
    clock = with_overhead(compared) / compared.gpu - 1
    model = compared.model / compared.gpu - 1
    names = list(dict.fromkeys(compared.kernel.tolist()))
    for small, label in ((False, "above 10 µs"), (True, "below")):
        for name in [*names, "all"]:
            of = (compared.gpu < _SMALL) == small
            if name != "all":
                of &= compared.kernel == name
            if of.any():
                errors = " | ".join(map(_errors, (clock[of], model[of])))
                lines.append(f"| {name}, {label} | {of.sum()} | {errors} |")
        for part, of in _parts(compared).items():
            of = of & ((compared.gpu < _SMALL) == small)
            if of.any():
                errors = " | ".join(map(_errors, (clock[of], model[of])))
                lines.append(f"| {part}, {label} | {of.sum()} | {errors} |")
    return lines


def _parts(compared: Compared) -> dict[str, npt.NDArray[np.bool_]]:
    """Return the points of each run, or, where there is one run, of each shape if they are few."""
    if compared.run is None:
        return {}
    runs = np.unique(compared.run)
    if len(runs) > 1:
        return {f"run {run}": compared.run == run for run in runs}
    shapes = dict.fromkeys(compared.extents)
    if len(shapes) > _FEW:
        return {}
    return {
        " x ".join(map(str, shape)): np.array([each == shape for each in compared.extents])
        for shape in shapes
    }


_FEW = 4


def _errors(relative: Floats) -> str:
    known = relative[np.isfinite(relative)]
    if not known.size:
        return "-"
    return f"{np.median(known):+.0%}, {np.median(np.abs(known)):.0%}"


def iteration_rows(compared: Compared, table: Table, known: dict[str, Kernel]) -> list[str]:
    """Return what a workgroup and an iteration of its main loop take, on the GPU and by the clock.

    Both are fitted to the points of a kernel whose operands the L2 caches of the GPU hold together:
    µs, beside the overhead of a launch, are rounds of workgroups times (of a workgroup + iterations
    times that of one). One round and several are apart, since workgroups share compute units there.
    """
    spec = arch(table.gpu)
    each = ck.fp8.bytes if table.dtype == "fp8" else ck.f16.bytes
    overhead = with_overhead(compared) - compared.clock
    lines = [
        "| kernel, rounds | points | GPU: cycles of a workgroup, of an iteration | clock |",
        "|---|---|---|---|",
    ]
    for name in dict.fromkeys(compared.kernel.tolist()):
        m, n, k = known[name].algorithm.tile
        tiles = np.array([-(-e[0] // m) * -(-e[1] // n) for e in compared.extents])
        rounds = -(-tiles // spec.compute_units)
        steps = np.array([-(-e[2] // k) for e in compared.extents])
        operands = np.array([each * (e[0] + e[1]) * e[2] for e in compared.extents])
        for several in (False, True):
            of = (compared.kernel == name) & ((rounds > 1) == several)
            of &= operands <= spec.l2_bytes * spec.chiplets
            if len(set(steps[of].tolist())) < _LEAST:
                continue
            terms = np.column_stack([rounds[of], (rounds * steps)[of]])
            fits = []
            for us in (compared.gpu - overhead, compared.clock):
                scale = 1 / us[of]
                fit, *_ = np.linalg.lstsq(terms * scale[:, None], np.ones(of.sum()), rcond=None)
                fits.append(", ".join(f"{each:,.0f}" for each in fit * spec.clock_hz / 1e6))
            label = "several" if several else "one"
            lines.append(f"| {name}, {label} | {of.sum()} | {fits[0]} | {fits[1]} |")
    return lines


_LEAST = 2
"""Lengths of the main loop from which two numbers follow."""


def print_table(compared: Compared, *, points: bool) -> None:
    """Print the rows, and before them each point if asked."""
    if points:
        columns = (compared.gpu, with_overhead(compared), compared.model)
        for name, extents, gpu, clock, model in zip(
            compared.kernel, compared.extents, *columns, strict=True
        ):
            print(f"{name} {extents}: {gpu:.2f}, clock {clock:.2f}, model {model:.2f}")
    print("\n".join(rows_of(compared)))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", default="gfx942", choices=TABLES)
    parser.add_argument("--only", help="kernels, separated by commas")
    parser.add_argument("--keep", type=Path, help="a folder in which built kernels stay")
    parser.add_argument("--points", action="store_true", help="print each point")
    parser.add_argument("--own-order", action="store_true", help="as the compiler orders by itself")
    parser.add_argument("--unpadded", action="store_true", help="kernels without padding")
    parser.add_argument("--what-if", help="a number of the clock and its value: rate_l2=1640")
    options = parser.parse_args()
    path, table = folder(), TABLES[options.gpu]
    if options.unpadded:
        table = replace(table, pads="False_False_False")
    if path is None:
        print("no folder 'silicon' in CKLANG_DATA_DIR: nothing to compare the clock with")
        return
    names = (options.only or table.default).split(",")
    order = () if options.own_order else _ORDER
    with tempfile.TemporaryDirectory() as name:
        changed = dict([options.what_if.split("=")]) if options.what_if else {}
        numbers = {number: float(value) for number, value in changed.items()}
        compared = compare(path, table, names, options.keep or Path(name), order, numbers)
    overhead = with_overhead(compared) - compared.clock
    print(f"overhead of a launch: {overhead.min():.2f} to {overhead.max():.2f} µs\n")
    print_table(compared, points=options.points)
    if compared.load is not None:
        print("\nUnder load:\n")
        slower = replace(compared, clock=compared.load + overhead, overhead=0.0)
        print_table(slower, points=options.points)
    print("\nOperands in the L2, at the highest clock:\n")
    print("\n".join(iteration_rows(compared, table, kernels(path, table))))


if __name__ == "__main__":
    main()
