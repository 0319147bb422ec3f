# SPDX-License-Identifier: MIT
"""Compare the clock's times of CK Tile's grouped convolutions with times on an MI355X.

Reads ``silicon/conv_forward_gfx950.csv`` of ``CKLANG_DATA_DIR``: bf16, channels last, 30 kernels
timed for each problem. Kernels are cklang's own, with the tile that the table names and with the
warps and the width of accesses of CK Tile's default rules (``conv_choice.py``); problems are those
whose input channels are multiples of 8 and whose output channels are multiples of 16 (of others the
source counts fewer results than there are). Prints Markdown, with the times of the analytic cost
model beside, by its constants for products, which saw no convolution, and by those that are fitted
to this table. Each kernel is held out: the overhead of a launch is that which fits the others'
times below 10 µs.

python benchmarks/clock_conv.py [--only 64x64x64_compv3] [--every 3] [--points]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from math import prod

import ml_dtypes
import numpy as np
import numpy.typing as npt
from clock_products import Compared, print_table
from conv_choice import GPU, WARPS, WIDTHS, Measured, predicted
from data.silicon import folder

import cklang as ck
from cklang.arch import arch
from cklang.families.conv.problem import ConvProblem
from cklang.families.cost_constants import PRODUCTS, fitted
from cklang.families.gemm.key import Algorithm, Pipeline

_DEFAULT = "64x64x64_compv3,128x128x64_compv3,16x64x64_compv3"
_WARP_TILES = {
    (16, 64): (16, 16, 32),
    (32, 64): (16, 16, 32),
    (64, 64): (16, 16, 32),
    (32, 128): (32, 32, 16),
    (64, 128): (32, 32, 16),
    (128, 64): (16, 16, 32),
    (128, 128): (32, 32, 16),
}
_STORED = 8
"""Elements that one store moves by CK Tile's rules."""
_MULTIPLES = (8, 16)
"""Of the channels of input and output."""

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


def algorithm(column: str) -> Algorithm:
    """Return the kernel of a column."""
    tile, _, pipeline = column.partition("_")
    m, n, k = map(int, tile.split("x"))
    return Algorithm(
        tile=(m, n, k),
        warps=WARPS[m, n],
        warp_tile=_WARP_TILES[m, n],
        pipeline=Pipeline(pipeline),
        vector_a=WIDTHS[0],
        vector_b=WIDTHS[1],
        vector_e=min(_STORED, elements_of_thread(column)),
    )


def elements_of_thread(column: str) -> int:
    """Return how many results a thread holds of what is shuffled at a time.

    It is one warp tile of each warp. CK Tile's stores are no wider, whatever its rules ask for.

    Example:
        >>> elements_of_thread("16x64x64_compv3"), elements_of_thread("128x128x64_compv3")
        (4, 16)
    """
    m, n, _ = map(int, column.partition("_")[0].split("x"))
    return prod(_WARP_TILES[m, n][:2]) // arch(GPU).wave_size


def clock_us(problem: ConvProblem, column: str) -> float:
    """Return the µs by the clock, without the overhead of a launch."""
    image = (problem.images, *_plane(problem.input), problem.channels)
    weight = (problem.features, *_plane(problem.window), problem.channels)
    x, w = (np.empty(shape, ml_dtypes.bfloat16) for shape in (image, weight))
    op = convolution.using(algorithm(column))
    numbers = (*_plane(problem.stride), *_plane(problem.before))
    return ck.predict(op, x, w, *numbers, device=f"emu:{GPU}").us


def _plane(extents: Sequence[int]) -> tuple[int, ...]:
    return tuple(extents[-2:])


def _whole(problem: ConvProblem) -> bool:
    counts = (problem.channels, problem.features)
    return all(count % each == 0 for count, each in zip(counts, _MULTIPLES, strict=True))


def compare(table: Measured, columns: list[str], every: int) -> dict[str, Compared]:
    """Time some kernels; return the comparison with each set of constants of the cost model."""
    whole = [row for row, problem in enumerate(table.problems) if _whole(problem)]
    rows: npt.NDArray[np.intp] = np.array(whole[::every], np.intp)
    places = np.array([table.columns.index(column) for column in columns], np.intp)
    problems = [table.problems[row] for row in rows]
    clock = np.array([clock_us(problem, column) for column in columns for problem in problems])
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


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=_DEFAULT, help="columns, separated by commas")
    parser.add_argument("--every", type=int, default=3, help="of so many problems one")
    parser.add_argument("--points", action="store_true", help="print each point")
    options = parser.parse_args()
    if folder() is None:
        print("no folder 'silicon' in CKLANG_DATA_DIR: nothing to compare the clock with")
        return
    compared = compare(Measured.read(), options.only.split(","), options.every)
    for constants, each in compared.items():
        print(f"\ncost model with the constants of {constants}\n")
        print_table(each, points=options.points)


if __name__ == "__main__":
    main()
