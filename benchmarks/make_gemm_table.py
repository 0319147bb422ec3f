# SPDX-License-Identifier: MIT
"""Make the table of published GEMM times from a checkout of AITER.

The table is no part of this repository. This script makes it from AITER's tuned tables
(https://github.com/ROCm/aiter, MIT licence), which hold the best kernel of each shape that a search
found on a real GPU::

    git clone https://github.com/ROCm/aiter
    python benchmarks/make_gemm_table.py aiter shared/data/mi3xx_gemm_tuned.csv.gz

It takes the kernels of classic CK, whose names state tile, scheduler and pipeline, and prints how
many rows it left out because another library won. Where AITER repeats a shape, the quickest row
stays. Times depend on the version of AITER: state the commit beside what you fit.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path

GPUS = {304: "gfx942", 80: "gfx942", 256: "gfx950"}
"""The GPU that has so many compute units: AITER's older tables say no more."""

FAMILIES = {
    "a8w8_blockscale_bpreshuffle_tuned_gemm": "a8w8_blockscale_bpreshuffle",
    "a8w8_blockscale_tuned_gemm": "a8w8_blockscale",
    "a8w8_bpreshuffle_tuned_gemm": "a8w8_bpreshuffle",
    "a8w8_tuned_gemm": "a8w8_rowwise",
}
"""What the names of AITER's tables begin with, and the family of their kernels."""

FP8 = {"gfx942": "float8_e4m3fnuz", "gfx950": "float8_e4m3fn"}

KERNEL = re.compile(
    r"(?P<family>a8w8_\w+?)_(?:1x128x128_)?(?P<block_size>\d+)x(?P<tile_m>\d+)x(?P<tile_n>\d+)"
    r"x(?P<tile_k>\d+)_\w*_(?P<scheduler>intrawave|interwave)_(?P<pipeline>v\d+)"
)
"""The name of a kernel of classic CK."""


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement, with the columns of the table."""

    gfx: str
    cus: int
    family: str
    dtype: str
    M: int
    N: int
    K: int
    split_k: int
    block_size: int
    tile_m: int
    tile_n: int
    tile_k: int
    scheduler: str
    pipeline: str
    lib: str
    us: float

    @property
    def shape(self) -> tuple[object, ...]:
        """What one row is kept of."""
        return self.gfx, self.cus, self.family, self.dtype, self.M, self.N, self.K


def family_of(path: Path) -> str | None:
    """Return the family of AITER's table at ``path``; None if it is of other kernels."""
    return next((family for stem, family in FAMILIES.items() if path.stem.startswith(stem)), None)


def dtype_of(row: dict[str, str], family: str, gfx: str) -> str:
    """Return the element type of a row: that of its own column, else of its table."""
    named = row.get("q_dtype_w", "").removeprefix("torch.")
    return named or ("int8" if family == "a8w8_rowwise" else FP8[gfx])


def read_row(row: dict[str, str], family: str) -> Row | None:
    """Return a row of AITER's as ours; None if its kernel is not one of classic CK."""
    kernel = KERNEL.fullmatch(row["kernelName"])
    if kernel is None:
        return None
    cus = int(row["cu_num"])
    gfx = row.get("gfx") or GPUS[cus]
    m, n, k = (int(row[name]) for name in ("M", "N", "K"))
    block_size = int(kernel["block_size"])
    tile_m, tile_n, tile_k = (int(kernel[f"tile_{axis}"]) for axis in "mnk")
    how = (kernel["scheduler"], kernel["pipeline"], "ck", float(row["us"]))
    dtype = dtype_of(row, family, gfx)
    tile = (block_size, tile_m, tile_n, tile_k)
    return Row(gfx, cus, family, dtype, m, n, k, int(row["splitK"]), *tile, *how)


def rows(checkout: Path, left_out: Counter[str]) -> Iterator[Row]:
    """Yield the rows of all tuned tables below ``checkout``; count those that are left out."""
    for path in sorted(checkout.rglob("*_tuned_gemm*.csv")):
        family = family_of(path)
        if family is None:
            continue
        with path.open(newline="") as file:
            for plain in csv.DictReader(file):
                row = read_row(plain, family)
                if row is None:
                    left_out[family] += 1
                else:
                    yield row


def best_of(measured: Iterator[Row]) -> list[Row]:
    """Return the quickest row of each shape, ordered by shape."""
    best: dict[tuple[object, ...], Row] = {}
    for row in measured:
        known = best.get(row.shape)
        if known is None or row.us < known.us:
            best[row.shape] = row
    return sorted(best.values(), key=astuple)


def write(path: Path, table: list[Row]) -> None:
    """Write the table; equal tables give equal bytes."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([field.name for field in fields(Row)])
    writer.writerows(astuple(row) for row in table)
    path.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", type=Path, help="a checkout of AITER")
    parser.add_argument("output", type=Path, help="the .csv.gz to write")
    options = parser.parse_args()
    left_out: Counter[str] = Counter()
    table = best_of(rows(options.checkout, left_out))
    if not table:
        sys.exit(f"{options.checkout} has no tuned tables (aiter/configs/*_tuned_gemm*.csv)")
    write(options.output, table)
    sys.stdout.write(f"{len(table)} rows written to {options.output}\n")
    for family, count in sorted(left_out.items()):
        sys.stdout.write(f"{family}: {count} rows of other libraries left out\n")


if __name__ == "__main__":
    main()
