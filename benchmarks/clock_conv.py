# SPDX-License-Identifier: MIT
"""Compare the clock's times of CK Tile's grouped convolutions with times on an MI355X.

Reads ``silicon/conv_forward_gfx950.csv`` of ``CKLANG_DATA_DIR``: bf16, channels last, 30 kernels
timed for each problem. Kernels are CK Tile's own (``hip/grouped_conv.hip``) with the tile that the
table names, and with the warps, warp tiles and widths of accesses that CK Tile's dispatcher gives
that tile by default; with ``--own`` they are cklang's. Problems are those whose input channels are
multiples of 8 and whose output channels are multiples of 16 (of others the source counts fewer
results than there are). Prints Markdown, with the times of the analytic cost model beside, by its
constants for products, which saw no convolution, and by those that are fitted to this table. Each
kernel is held out: the overhead of a launch is that which fits the others' times below 10 µs.

``--parts`` prints what an iteration of the main loop and the rest of a workgroup take, by least
squares over relative errors: of problems with fewer workgroups than compute units, and of those
with so many that compute units are full. ``CKLANG_CLANG`` names another compiler.

python benchmarks/clock_conv.py [--only 64x64x64_compv3] [--every 3] [--points] [--parts] [--own]
    [--keep folder] [--mllvm=-enable-misched=0]
"""

from __future__ import annotations

import argparse
import ctypes
import tempfile
from collections.abc import Callable, Sequence
from math import ceil, prod
from pathlib import Path

import ml_dtypes
import numpy as np
import numpy.typing as npt
from clock_products import Compared, print_table
from conv_choice import GPU, WARPS, WIDTHS, Measured, predicted
from data.silicon import folder
from hip_programs import hip_module, ok

import cklang as ck
from cklang.arch import arch
from cklang.device.device import open_device
from cklang.emulator.clock.constants import constants_of
from cklang.emulator.clock.kernel import launch_detail
from cklang.emulator.clock.sampling import recorded_with
from cklang.emulator.engine.recording import RecordedLaunch, timing
from cklang.emulator.hipcc import driver
from cklang.families.conv.problem import ConvProblem
from cklang.families.cost_constants import PRODUCTS, fitted
from cklang.families.gemm.key import Algorithm, Pipeline
from cklang.toolchain.compilers import find_ck_tree

_DEFAULT = "64x64x64_compv3,128x128x64_compv3,16x64x64_compv3"
_SMALL, _LARGE = (16, 16, 16), (32, 32, 16)
_WARP_TILES = {
    (16, 64, 64): _SMALL,
    (32, 64, 64): _SMALL,
    (64, 64, 64): _SMALL,
    (32, 128, 64): _LARGE,
    (64, 128, 64): _LARGE,
    (128, 128, 64): _LARGE,
}
_DEEP = (16, 16, 32)
"""The warp tile of the tiles that are 128 deep."""
_STORED = 8
"""Elements that one store moves by CK Tile's rules."""
_MULTIPLES = (8, 16)
"""Of the channels of input and output."""
_SOURCE = Path(__file__).parent / "hip" / "grouped_conv.hip"
_EXAMPLE = Path("example", "ck_tile", "20_grouped_convolution")
_FLAGS = ("-std=c++20", "-DNDEBUG", "-w", "-O3", "-mllvm", "-enable-noalias-to-md-conversion=0")

N, H, W, C, K, Y, X, Ho, Wo = ck.dims("N H W C K Y X Ho Wo")


@ck.op
def convolution(
    x: ck.bf16[N, H, W, C],
    w: ck.bf16[K, Y, X, C],
    stride_h: ck.const[int],
    stride_w: ck.const[int],
    pad_h: ck.const[int],
    pad_w: ck.const[int],
) -> ck.bf16[N, Ho, Wo, K]:
    """Convolve as the table's kernels do."""
    return ck.conv(x, w, stride=(stride_h, stride_w), padding=(pad_h, pad_w))


def _tile(column: str) -> tuple[int, int, int]:
    m, n, k = map(int, column.partition("_")[0].split("x"))
    return m, n, k


def algorithm(column: str) -> Algorithm:
    """Return the kernel of a column."""
    tile = _tile(column)
    return Algorithm(
        tile=tile,
        warps=WARPS[tile[:2]],
        warp_tile=_WARP_TILES.get(tile, _DEEP),
        pipeline=Pipeline(column.partition("_")[2]),
        vector_a=WIDTHS[0],
        vector_b=WIDTHS[1],
        vector_e=min(_STORED, elements_of_thread(column)),
    )


def elements_of_thread(column: str) -> int:
    """Return how many results a thread holds of what cklang's epilogue shuffles at a time.

    It is one warp tile of each warp, and stores are no wider.

    Example:
        >>> elements_of_thread("16x64x64_compv3"), elements_of_thread("128x128x64_compv3")
        (4, 16)
    """
    return prod(_WARP_TILES.get(_tile(column), _DEEP)[:2]) // arch(GPU).wave_size


class Unit:
    """CK Tile's kernel of a column on the emulated GPU."""

    def __init__(self, column: str, where: Path, options: Sequence[str]) -> None:
        where.mkdir(parents=True, exist_ok=True)
        library = where / f"{column}.so"
        if not library.is_file():
            if not column.endswith("_compv3"):
                raise SystemExit(f"{column}: only compv3 is built")
            own = algorithm(column)
            macros = {
                **dict(zip(("TILE_M", "TILE_N", "TILE_K"), own.tile, strict=True)),
                **dict(zip(("WARPS_M", "WARPS_N"), own.warps[:2], strict=True)),
                "WARP_TILE_MN": own.warp_tile[0],
                "WARP_TILE_K": own.warp_tile[2],
            }
            example = find_ck_tree().include.parent / _EXAMPLE
            told = (word for option in options for word in ("-mllvm", option))
            words = (*_FLAGS, *told, f"--offload-arch={GPU}", "-I", str(example))
            defined = (f"-D{name}={value}" for name, value in macros.items())
            driver.build(
                [*words, *defined, "-fPIC", "-shared", str(_SOURCE), "-o", str(library)], print
            )
        self._run = ctypes.CDLL(str(library)).run

    def detail_us(self, problem: ConvProblem, memory: Sequence[int]) -> float:
        """Return the µs by the clock, without the overhead of a launch."""
        planes = (problem.input, problem.window, problem.stride, problem.before)
        counts = (problem.images, problem.channels, problem.features)
        extents = (*counts, *(extent for plane in planes for extent in _plane(plane)))

        def record(count: int) -> Sequence[RecordedLaunch]:
            with timing(count, alone=True) as recording:
                pointers = map(ctypes.c_void_p, memory)
                if self._run((ctypes.c_int * len(extents))(*extents), *pointers):
                    raise SystemExit(f"CK Tile refuses {extents}")
                ok(hip_module().hipDeviceSynchronize())
            return recording.launches

        footprint = 2 * (problem.m * problem.n + sum(map(prod, shapes(problem))))
        spec = arch(GPU)
        detail = launch_detail(recorded_with(record)[0], spec, constants_of(GPU), footprint)
        return detail.cycles / spec.clock_hz * 1e6


def shapes(problem: ConvProblem) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of image and weight."""
    image = (problem.images, *_plane(problem.input), problem.channels)
    return image, (problem.features, *_plane(problem.window), problem.channels)


def own_us(problem: ConvProblem, column: str) -> float:
    """Return the µs of cklang's kernel by the clock, without the overhead of a launch."""
    x, w = (np.empty(shape, ml_dtypes.bfloat16) for shape in shapes(problem))
    op = convolution.using(algorithm(column))
    numbers = (*_plane(problem.stride), *_plane(problem.before))
    return ck.predict(op, x, w, *numbers, device=f"emu:{GPU}").us


def upstream_us(where: Path, options: Sequence[str]) -> Callable[[ConvProblem, str], float]:
    """Return the function that times CK Tile's kernels, which are built in a folder.

    Args:
        where: The folder.
        options: Of LLVM.
    """
    hip = hip_module()
    ok(hip.hipSetDevice(open_device(f"emu:{GPU}").index))
    units: dict[str, Unit] = {}

    def time(problem: ConvProblem, column: str) -> float:
        if column not in units:
            units[column] = Unit(column, where, options)
        unit = units[column]
        sizes = [2 * prod(shape) for shape in (*shapes(problem), (problem.m, problem.n))]
        memory = [int(ok(hip.hipMalloc(size))) for size in sizes]
        try:
            return unit.detail_us(problem, memory)
        finally:
            for address in memory:
                ok(hip.hipFree(address))

    return time


def _plane(extents: Sequence[int]) -> tuple[int, ...]:
    return tuple(extents[-2:])


def _whole(problem: ConvProblem) -> bool:
    counts = (problem.channels, problem.features)
    return all(count % each == 0 for count, each in zip(counts, _MULTIPLES, strict=True))


def compare(
    table: Measured, columns: list[str], every: int, time: Callable[[ConvProblem, str], float]
) -> dict[str, Compared]:
    """Time some kernels; return the comparison with each set of constants of the cost model."""
    whole = [row for row, problem in enumerate(table.problems) if _whole(problem)]
    rows: npt.NDArray[np.intp] = np.array(whole[::every], np.intp)
    places = np.array([table.columns.index(column) for column in columns], np.intp)
    problems = [table.problems[row] for row in rows]
    clock = np.array([time(problem, column) for column in columns for problem in problems])
    result = {}
    for constants in (PRODUCTS, "conv"):
        model = predicted(table, fitted(table.spec, constants).constants, rows)
        result[constants] = Compared(
            np.repeat(columns, len(rows)),
            tuple((each.m, each.n, each.k) for each in problems) * len(columns),
            table.us[np.ix_(rows, places)].T.ravel(),
            clock,
            model[:, places].T.ravel(),
        )
    return result


_FULL = 6
"""Workgroups of each compute unit from which compute units are full."""


def parts_of(compared: Compared) -> list[str]:
    """Return a row of Markdown for each kernel: cycles on the GPU and by the clock."""
    spec = arch(GPU)
    lines = [
        "| kernel | iteration, few workgroups | iteration, many | rest of a workgroup, many |",
        "|---|---|---|---|",
    ]
    for name in dict.fromkeys(compared.kernel.tolist()):
        of = compared.kernel == name
        m, n, k = _tile(name)
        extents = [each for each, chosen in zip(compared.extents, of, strict=True) if chosen]
        groups = np.array([ceil(em / m) * ceil(en / n) for em, en, _ in extents])
        loops = np.array([ceil(ek / k) for *_, ek in extents], float)
        each = groups / spec.compute_units
        few, many = (each < 1) & (loops > 1), each > _FULL
        cells = []
        for chosen, columns, place in (
            (few, (loops, np.ones(len(loops))), 0),
            (many, (each * loops, each, np.ones(len(loops))), 0),
            (many, (each * loops, each, np.ones(len(loops))), 1),
        ):
            pair = [
                _slopes(times[of][chosen], np.stack(columns, 1)[chosen])[place]
                for times in (compared.gpu, compared.clock)
            ]
            gpu, clock = (us * spec.clock_hz / 1e6 for us in pair)
            cells.append(f"{gpu:.0f}, clock {clock:.0f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _slopes(us: npt.NDArray[np.float64], columns: npt.NDArray[np.float64]) -> list[float]:
    if len(us) < columns.shape[1] + 2:
        return [float("nan")] * columns.shape[1]
    solution = np.linalg.lstsq(columns / us[:, None], np.ones(len(us)), rcond=None)[0]
    slopes: list[float] = solution.tolist()
    return slopes


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=_DEFAULT, help="columns, separated by commas")
    parser.add_argument("--every", type=int, default=3, help="of so many problems one")
    parser.add_argument("--points", action="store_true", help="print each point")
    parser.add_argument("--parts", action="store_true", help="print cycles of a workgroup's parts")
    parser.add_argument("--own", action="store_true", help="cklang's kernels")
    parser.add_argument("--keep", type=Path, help="a folder in which built kernels stay")
    parser.add_argument("--mllvm", action="append", default=[], help="an option of LLVM")
    options = parser.parse_args()
    if folder() is None:
        print("no folder 'silicon' in CKLANG_DATA_DIR: nothing to compare the clock with")
        return
    with tempfile.TemporaryDirectory() as name:
        time = own_us if options.own else upstream_us(options.keep or Path(name), options.mllvm)
        compared = compare(Measured.read(), options.only.split(","), options.every, time)
    if options.parts:
        print("\n".join(parts_of(compared[PRODUCTS])))
    for constants, each in compared.items():
        print(f"\ncost model with the constants of {constants}\n")
        print_table(each, points=options.points)


if __name__ == "__main__":
    main()
