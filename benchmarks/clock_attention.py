# SPDX-License-Identifier: MIT
"""Compare the clock's time of CK Tile's dense attention with times on an MI300X and an MI355X.

Reads ``silicon/ck_tile_attention_mi300.csv`` (f16, batch 2, 16 heads, 8192 queries and keys of 128)
and, of ``silicon/kernel_times.csv``, what CK Tile's example takes on an MI355X (bf16, batch 16) of
``CKLANG_DATA_DIR``. The kernel is the one that cklang chooses; prints Markdown.

python benchmarks/clock_attention.py [--gpu gfx950]
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from data.silicon import folder

import cklang as ck

_BATCH, _HEADS, _LENGTH, _WIDTH = 2, 16, 8192, 128
_MOST_BYTES = 1 << 30
"""Of q, k, v and the result: longer points take long to copy."""
_WORKGROUPS = 8
"""Recorded of a causal launch, whose workgroups differ."""

B, H, G, S, D = ck.dims("B H G S D")
T: Any = ck.dtype_var("T")


@ck.op
def attention(q: T[B, H, S, D], k: T[B, G, S, D], v: T[B, G, S, D]) -> T[B, H, S, D]:
    """Compute dense attention."""
    return ck.attention(q, k, v)


@ck.op
def causal(q: T[B, H, S, D], k: T[B, G, S, D], v: T[B, G, S, D]) -> T[B, H, S, D]:
    """Compute causal attention."""
    return ck.attention(q, k, v, mask=ck.causal())


@dataclass(frozen=True, slots=True)
class Point:
    """A call that was timed."""

    gpu: str
    causal: bool
    batch: int
    heads: int
    heads_kv: int
    length: int
    width: int
    us: float

    @property
    def bytes(self) -> int:
        """Of the operands, in 16-bit elements."""
        each = self.batch * self.length * self.width
        return 2 * 2 * each * (self.heads + self.heads_kv)

    def clock_us(self) -> float:
        """Return the µs by the clock, without the overhead of a launch."""
        dtype = ml_dtypes.bfloat16 if self.gpu == "gfx950" else np.float16
        shapes = [
            (self.batch, heads, self.length, self.width)
            for heads in (self.heads, self.heads_kv, self.heads_kv)
        ]
        args = [np.zeros(shape, dtype) for shape in shapes]
        op, count = (causal, _WORKGROUPS) if self.causal else (attention, 1)
        return ck.predict(op, *args, device=f"emu:{self.gpu}", workgroups=count).us


def of_mi300(path: Path) -> list[Point]:
    """Return the point of dense attention, with the median µs of its runs."""
    with (path / "ck_tile_attention_mi300.csv").open(newline="") as file:
        (row,) = (row for row in csv.DictReader(file) if row["curve"] == "fmha_dense")
    us = float(np.median([float(us) for name, us in row.items() if name.startswith("us_")]))
    return [Point("gfx942", False, _BATCH, _HEADS, _HEADS, _LENGTH, _WIDTH, us)]


def of_mi355(path: Path) -> list[Point]:
    """Return the forward points of CK Tile's example that are not too large."""
    points = []
    with (path / "kernel_times.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            kind = (row["gpu"], row["op"], row["implementation"], row["latest"])
            if kind == ("MI355X", "attention_fwd", "CK Tile", "1"):
                point = Point(
                    gpu="gfx950",
                    causal=row["causal"] == "1",
                    batch=int(row["batch"]),
                    heads=int(row["heads_q"]),
                    heads_kv=int(row["heads_kv"]),
                    length=int(row["seqlen"]),
                    width=int(row["head_dim"]),
                    us=float(row["us"]),
                )
                points.append(point)
    return [point for point in points if point.bytes <= _MOST_BYTES]


_READERS = {"gfx942": of_mi300, "gfx950": of_mi355}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", default=",".join(_READERS), help="GPUs, separated by commas")
    options = parser.parse_args()
    path = folder()
    if path is None:
        print("no folder 'silicon' in CKLANG_DATA_DIR: nothing to compare the clock with")
        return
    print("| GPU | causal | batch | heads | length | width | GPU, µs | clock, µs | error |")
    print("|---|---|---|---|---|---|---|---|---|")
    errors: dict[str, list[float]] = {}
    for gpu in options.gpu.split(","):
        for p in _READERS[gpu](path):
            clock = p.clock_us()
            errors.setdefault(gpu, []).append(clock / p.us - 1)
            heads = f"{p.heads} / {p.heads_kv}"
            words = (gpu, "yes" if p.causal else "no", p.batch, heads, p.length, p.width)
            numbers = f"{p.us:.0f} | {clock:.0f} | {clock / p.us - 1:+.0%}"
            print("| " + " | ".join(map(str, words)) + f" | {numbers} |", flush=True)
    for gpu, each in errors.items():
        print(
            f"{gpu}: median {np.median(each):+.0%}, median of sizes {np.median(np.abs(each)):.0%}"
        )


if __name__ == "__main__":
    main()
