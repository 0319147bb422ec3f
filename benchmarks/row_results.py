# SPDX-License-Identifier: MIT
"""How long kernels of rows take by the clock, by the length of rows and by where results go.

    python benchmarks/row_results.py [gpu ...]

The clock gives the same time each time, so one run each of two versions is a comparison.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

import cklang as ck
from cklang.prebuilding.essentials import layer_normalised, normalised, probabilities

GPUS = ("gfx942", "gfx950", "gfx1201")
SIZES = ((4096, 4096), (64, 1024), (200, 768), (2048, 4097), (512, 1024), (512, 1001))
STRIDED = (512, 1024), (512, 1001)

B, M, K = ck.dims("B M K")


@ck.op
def shares(x: ck.f16[B, M, K]) -> ck.f16[B, M, K]:
    """Elements of matrices by the largest of each."""
    return x / ck.max(x, axis=(1, 2))[:, None, None]


def results(rows: int, length: int) -> Iterator[tuple[str, npt.NDArray[np.float16]]]:
    """Yield arrays for a result, with what they are called."""
    yield "contiguous", np.zeros((rows, length), np.float16)
    if (rows, length) in STRIDED:
        yield "columns", np.zeros((length, rows), np.float16).T
        yield "every other", np.zeros((rows, 2 * length), np.float16)[:, ::2]


def main() -> None:
    """Print a line for each case."""
    for gpu in sys.argv[1:] or GPUS:
        device = f"emu:{gpu}"
        for rows, length in SIZES:
            x = np.zeros((rows, length), np.float16)
            vectors = [np.zeros(length, np.float16)] * 2
            operands = {normalised: vectors[:1], layer_normalised: vectors, probabilities: []}
            for op, others in operands.items():
                for where, out in results(rows, length):
                    us = ck.predict(op, x, *others, out=out, device=device).us
                    name = op.program.name
                    print(f"{gpu} {rows}x{length} {name} {where} {us:.2f}", flush=True)
        x = np.zeros((64, 24, 48), np.float16)
        for where, out in (
            ("contiguous", np.zeros_like(x)),
            ("along two axes", np.zeros((64, 24, 64), np.float16)[:, :, :48]),
        ):
            us = ck.predict(shares, x, out=out, device=device).us
            print(f"{gpu} 64x24x48 shares {where} {us:.2f}", flush=True)


if __name__ == "__main__":
    main()
