# SPDX-License-Identifier: MIT
"""Our defaults by the clock beside the best published times, by family and GPU.

    python benchmarks/by_clock.py [--rows 8] [--all] [--only WORD]

Draws a few rows of each published table (``benchmarks/data/README.md``), the same ones each time,
predicts what the catalogue chooses for them, under load as those times were taken, and prints the
ratio to the published time: its geometric mean, the least and the most; with ``--all`` each row.
The tables' times are the quickest that a search among kernels found. KernelBench's are the better
of eager torch and Inductor, of problems that take them more than 50 µs. Ratios below 1 are quicker
by the clock; no GPU has timed our side.

:data:`GUARDED` are products of language models in shapes of our own choice, which
`tests/registry/test_by_clock.py` keeps from becoming slower.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from data import published
from kernelbench import FIRST_LEVEL

import cklang as ck
from cklang.emulator import Prediction
from cklang.errors import CkError

B, C, H, K, M, N, P, Q, W, Y, X = ck.dims("B C H K M N P Q W Y X")

Shape = tuple[int, ...]


@ck.op
def plain(x: ck.bf16[M, K], w: ck.bf16[N, K]) -> ck.bf16[M, N]:
    """A product."""
    return x @ w.T


@ck.op
def batched(x: ck.bf16[B, M, K], w: ck.bf16[B, N, K]) -> ck.bf16[B, M, N]:
    """A batch of products."""
    return x @ w.mT


def _per_token(dtype: ck.DType) -> ck.Op:
    @ck.op
    def per_token(x: dtype[M, K], w: dtype[N, K], sx: ck.f32[M], sw: ck.f32[N]) -> ck.bf16[M, N]:
        """A product of 8-bit numbers with a scale of each row and column."""
        return (x @ w.T).to(ck.f32) * sx[:, None] * sw

    return per_token


def _block_scaled(dtype: ck.DType) -> ck.Op:
    @ck.op
    def block_scaled(
        x: dtype[M, K], w: dtype[N, K], sx: ck.f32[M, K / 128], sw: ck.f32[N / 128, K / 128]
    ) -> ck.bf16[M, N]:
        """A product of 8-bit floats with scales of blocks."""
        return ck.gemm(x, w.T, scale_a=sx, scale_b=sw.T)

    return block_scaled


_FP8 = {"gfx942": ck.fp8_fnuz, "gfx950": ck.fp8}
_OF_TOKENS = {dtype: _per_token(dtype) for dtype in (*_FP8.values(), ck.i8)}
_OF_BLOCKS = {dtype: _block_scaled(dtype) for dtype in _FP8.values()}


@ck.op
def exponents(
    x: ck.fp4[M, K], w: ck.fp4[N, K], sx: ck.e8m0[M, K / 32], sw: ck.e8m0[N, K / 32]
) -> ck.bf16[M, N]:
    """A product of 4-bit floats with an exponent for each 32."""
    return ck.gemm(x, w.T, scale_a=sx, scale_b=sw.T)


@ck.op
def convolution(
    x: ck.bf16[N, H, W, C],
    w: ck.bf16[K, Y, X, C],
    stride_h: ck.const[int],
    stride_w: ck.const[int],
    pad_h: ck.const[int],
    pad_w: ck.const[int],
) -> ck.bf16[N, P, Q, K]:
    """A convolution of images."""
    return ck.conv(x, w, stride=(stride_h, stride_w), padding=(pad_h, pad_w))


def _over(extent: int, size: int) -> int:
    return -(-extent // size)


def _zeros(shape: Shape, dtype: Any) -> Any:
    return np.zeros(shape, dtype.numpy)


def _matrices(shape: Shape, dtype: Any) -> list[Any]:
    *batch, m, n, k = shape
    return [_zeros((*batch, m, k), dtype), _zeros((*batch, n, k), dtype)]


def _tokens(shape: Shape, dtype: Any) -> list[Any]:
    m, n, _ = shape
    return [*_matrices(shape, dtype), _zeros((m,), ck.f32), _zeros((n,), ck.f32)]


def _blocks(shape: Shape, gpu: str) -> list[Any]:
    m, n, k = shape
    steps = _over(k, 128)
    scales = [_zeros((m, steps), ck.f32), _zeros((_over(n, 128), steps), ck.f32)]
    return [*_matrices(shape, _FP8[gpu]), *scales]


def _exponents(shape: Shape, _gpu: str) -> list[Any]:
    m, n, k = shape
    scales = [_zeros((rows, _over(k, 32)), ck.e8m0) for rows in (m, n)]
    return [*map(ck.pack, _matrices(shape, ck.fp4)), *scales]


def _images(shape: Shape, _gpu: str) -> list[Any]:
    n, h, w, c, k, y, x, *moves = shape
    return [_zeros((n, h, w, c), ck.bf16), _zeros((k, y, x, c), ck.bf16), *moves]


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of call."""

    op: Callable[[str], ck.Op]
    """Returns the op for a GPU."""
    arguments: Callable[[Shape, str], list[Any]]
    """Returns the arrays and constants of a call, for a shape and a GPU."""


FAMILIES: Mapping[str, Family] = {
    "bf16 product": Family(lambda _: plain, lambda shape, _: _matrices(shape, ck.bf16)),
    "bf16 batch": Family(lambda _: batched, lambda shape, _: _matrices(shape, ck.bf16)),
    "fp8, scales of tokens": Family(
        lambda gpu: _OF_TOKENS[_FP8[gpu]], lambda shape, gpu: _tokens(shape, _FP8[gpu])
    ),
    "int8, scales of tokens": Family(
        lambda _: _OF_TOKENS[ck.i8], lambda shape, _: _tokens(shape, ck.i8)
    ),
    "fp8, scales of blocks": Family(lambda gpu: _OF_BLOCKS[_FP8[gpu]], _blocks),
    "fp4, scales of 32": Family(lambda _: exponents, _exponents),
    "bf16 convolution": Family(lambda _: convolution, _images),
}

BOARDS = {"MI300X": "gfx942", "MI355X": "gfx950"}


@dataclass(frozen=True, slots=True)
class Case:
    """A call on a board, and the best published time."""

    family: str
    board: str
    shape: Shape
    us: float

    def predicted(self) -> Prediction:
        """Return the prediction of the call's kernels."""
        family, gpu = FAMILIES[self.family], BOARDS[self.board]
        arguments = family.arguments(self.shape, gpu)
        with ck.using(preset="catalogue"):
            op = family.op(gpu)
            return ck.predict(op, *arguments, device=f"emu:{gpu}", board=self.board)


def _rows(name: str) -> Iterator[dict[str, str]]:
    with gzip.open(published.locate(name), "rt", newline="") as file:
        yield from csv.DictReader(file)


def _shape(row: Mapping[str, str]) -> Shape:
    batch = [int(row["batch"])] if row.get("batch") not in ("", None) else []
    return (*batch, *(int(row[name]) for name in "MNK"))


_CLASSIC = {
    ("gfx942", "304"): "MI300X",
    ("gfx950", "256"): "MI355X",
}
_OF_CLASSIC = {
    ("a8w8_blockscale", "float8"): "fp8, scales of blocks",
    ("a8w8_rowwise", "float8"): "fp8, scales of tokens",
    ("a8w8_rowwise", "int8"): "int8, scales of tokens",
}
_OF_OTHERS = {
    "gemm_bf16": "bf16 product",
    "batched_gemm_bf16": "bf16 batch",
    "gemm_a4w4_blockscale": "fp4, scales of 32",
    "gemm_a8w8_bpreshuffle": "scales of tokens",
}


def _classic() -> Iterator[Case]:
    for row in _rows(published.TABLE):
        family = _OF_CLASSIC.get((row["family"], row["dtype"].partition("_")[0]))
        board = _CLASSIC.get((row["gfx"], row["cus"]))
        if family is not None and board is not None:
            yield Case(family, board, _shape(row), float(row["us"]))


def _others() -> Iterator[Case]:
    for row in _rows("silicon/other_gemm_tuned.csv.gz"):
        family = _OF_OTHERS.get(row["op"])
        if family is None or row["gpu"] not in BOARDS or "bias=True" in row["other"]:
            continue
        if family == "scales of tokens":
            family = f"{'int8' if row['dtype'] == 'int8' else 'fp8'}, {family}"
        yield Case(family, row["gpu"], _shape(row), float(row["us"]))


_PLACES = ("N", "Hi", "Wi", "C", "K", "Y", "X", "stride_h", "stride_w", "pad_h", "pad_w")


def _convolutions() -> Iterator[Case]:
    """Yield problems whose kernels wrote all results, with the time of the quickest kernel."""
    path = published.locate("silicon/conv_forward_gfx950.csv")
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["partly_written"] == "0" and row["G"] == "1":
                shape = tuple(int(row[name]) for name in _PLACES)
                times = (float(us) for name, us in row.items() if "_comp" in name and us)
                yield Case("bf16 convolution", "MI355X", shape, min(times))


_LEAST = 4.0
"""Published times below it are those of launches."""

_MOST = 1000.0
"""Longer calls take long to predict."""


def cases(count: int, seed: int = 0) -> dict[tuple[str, str], list[Case]]:
    """Return so many cases of each family and board, the same ones for a seed."""
    groups: dict[tuple[str, str], dict[Shape, Case]] = {}
    for source in (_classic, _others, _convolutions):
        for case in source():
            known = groups.setdefault((case.family, case.board), {})
            best = known.get(case.shape)
            if _LEAST <= case.us <= _MOST and (best is None or case.us < best.us):
                known[case.shape] = case
    drawn = {}
    for place, (name, known) in enumerate(sorted(groups.items())):
        order = np.random.RandomState(seed + place).permutation(len(known))[:count]
        drawn[name] = [known[shape] for shape in (sorted(known)[i] for i in sorted(order))]
    return drawn


GUARDED: Sequence[Case] = (
    Case("bf16 product", "MI355X", (1024, 8192, 4096), 98.5),
    Case("bf16 product", "MI355X", (64, 4096, 4096), 8.6),
    Case("bf16 batch", "MI300X", (16, 256, 1024, 1024), 30.8),
    Case("fp8, scales of tokens", "MI300X", (2048, 4096, 4096), 90.9),
    Case("fp8, scales of tokens", "MI355X", (128, 8192, 4096), 13.6),
    Case("int8, scales of tokens", "MI300X", (2048, 4096, 4096), 69.0),
    Case("fp8, scales of blocks", "MI300X", (4096, 4096, 2048), 96.2),
    Case("fp8, scales of blocks", "MI355X", (1024, 4096, 4096), 24.6),
    Case("fp4, scales of 32", "MI355X", (1024, 4096, 4096), 19.6),
    Case("bf16 convolution", "MI355X", (8, 28, 28, 256, 256, 3, 3, 1, 1, 1, 1), 25.6),
)
"""Calls in shapes of our own choice, with the µs under load that each took when it was last
changed, in the place of a published time."""


def under_load(predicted: Prediction) -> float:
    """Return the µs under load; those at the highest clock where nobody knows the former."""
    return float(predicted.us_under_load or predicted.us)


def _ratio(case: Case) -> float | None:
    try:
        return under_load(case.predicted()) / case.us
    except CkError as mistake:
        print(f"{case.family} {case.shape}: {mistake}".splitlines()[0])
        return None


def line(family: str, board: str, ratios: Sequence[float]) -> str:
    """Return a line of the table."""
    mean = np.exp(np.mean(np.log(ratios)))
    numbers = " | ".join(f"{number:.2f}" for number in (mean, min(ratios), max(ratios)))
    return f"| {family} | {board} | {len(ratios)} | {numbers} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--only", default="")
    parser.add_argument("--all", action="store_true")
    asked = parser.parse_args()
    print("| family | board | rows | ours over the best published | least | most |")
    print("|---|---|---:|---:|---:|---:|")
    for (family, board), drawn in cases(asked.rows).items():
        if asked.only not in f"{family} {board}":
            continue
        pairs = [(case, _ratio(case)) for case in drawn]
        known = [ratio for _, ratio in pairs if ratio is not None]
        if known:
            print(line(family, board, known), flush=True)
        for case, ratio in pairs if asked.all else ():
            if ratio is not None:
                print(f"  {case.shape}: {ratio * case.us:.1f} µs, {ratio:.2f}", flush=True)
    if asked.only in "KernelBench MI300X":
        rows = [(row, row.torch or 0) for row in FIRST_LEVEL.values()]
        ratios = [under_load(row.timed().prediction) / torch for row, torch in rows if torch > 50]
        print(line("KernelBench, f32", "MI300X", ratios))


if __name__ == "__main__":
    main()
