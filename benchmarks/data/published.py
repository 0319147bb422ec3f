# SPDX-License-Identifier: MIT
"""Read the published measurements (see README.md beside this file) as arrays and kernel traits.

The table is no part of the repository: it is read from the folder that ``CKLANG_DATA_DIR`` names,
by default ``shared/data`` beside the checkout.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cklang import knobs
from cklang.arch import ArchSpec, arch
from cklang.families.gemm.cost.traits import Traits

TABLE = "mi3xx_gemm_tuned.csv.gz"
_FOLDER = Path(__file__).parent
_BESIDE = _FOLDER.parents[2] / "shared" / "data"
_SCALE_K = {"a8w8_blockscale": 128, "a8w8_blockscale_bpreshuffle": 128}
_PRESHUFFLED = {"a8w8_bpreshuffle", "a8w8_blockscale_bpreshuffle"}
# K steps that a pipeline of classic CK loads ahead; it refuses problems with no more than these.
_STAGES = {"v1": 0, "v2": 1, "v3": 2, "v4": 2, "v5": 2}

_SMALL_M = 256
_SLOW = 0.85
"""Part of a published time below which another kernel is much quicker, larger M and all."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel of a table."""

    family: str
    threads: int
    tile: tuple[int, int, int]
    scheduler: str
    pipeline: str
    waves: tuple[int, int]
    warp_tile: tuple[int, int]
    """Rows and columns of the matrix instruction."""
    split_k: int

    @property
    def name(self) -> str:
        """A short name, for tables."""
        tile = "x".join(map(str, self.tile))
        return f"{tile} {self.pipeline} {self.scheduler[:5]} {self.threads} split {self.split_k}"

    @property
    def stages(self) -> int:
        """K steps that it refuses to go below, less one."""
        return _STAGES[self.pipeline]

    def traits(self, spec: ArchSpec) -> Traits:
        """Return what the cost model sees of it."""
        rates = {rate.dtype: rate.flops_per_clock for rate in spec.matrix_rates}
        scale_k = _SCALE_K.get(self.family, 0)
        area = self.tile[0] * self.tile[1]
        # The launch bounds of classic CK's kernels: two workgroups per compute unit are asked for
        # if the accumulators leave room (block scales), or for the interwave scheduler (others).
        small = area / self.threads <= 64 if scale_k else False
        return Traits.of(
            spec,
            tile=self.tile,
            waves=(*self.waves, 1),
            rate=float(rates["fp8"]),
            prefetches=self.stages > 0,
            bytes_a=1,
            bytes_b=1,
            bytes_out=2,
            split_k=self.split_k,
            double_buffer=self.pipeline == "v4",
            b_in_lds=self.family not in _PRESHUFFLED,
            scale_k=scale_k,
            warp_tile=self.warp_tile,
            accumulators=2 if scale_k else 1,
            blocks_per_cu=2 if small or self.scheduler == "interwave" else 1,
        )


@dataclass(frozen=True, slots=True)
class Table:
    """The measurements of one family on one GPU."""

    spec: ArchSpec
    family: str
    kernels: tuple[Kernel, ...]
    """Those that won at least one shape on this GPU: the candidates."""
    m: Ints
    n: Ints
    k: Ints
    winner: Ints
    """Index into kernels."""
    us: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.us)

    def take(self, rows: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> Table:
        """Return some of the rows, with the same candidates."""
        m, n, k, winner = (c[rows] for c in (self.m, self.n, self.k, self.winner))
        return Table(self.spec, self.family, self.kernels, m, n, k, winner, self.us[rows])

    def legal(self) -> npt.NDArray[np.bool_]:
        """Return which kernel accepts which shape, [rows, kernels]; winners always do.

        Split-K wants parts of whole tiles, but where B is preshuffled: of the other winners with
        split-K, some 400, not one has parts of another length.
        """
        tile_k = np.array([kernel.tile[2] * kernel.split_k for kernel in self.kernels])
        stages = np.array([kernel.stages for kernel in self.kernels])
        any_part = np.array([kernel.split_k == 1 for kernel in self.kernels])
        any_part |= self.family in _PRESHUFFLED
        legal: npt.NDArray[np.bool_] = -(-self.k[:, None] // tile_k) > stages
        legal &= any_part | (self.k[:, None] % tile_k == 0)
        legal[np.arange(len(self)), self.winner] = True
        return legal

    def searched(self) -> npt.NDArray[np.bool_]:
        """Guess which kernels a row's session searched, [rows, kernels].

        Some sessions had no kernels with split-K. One that had them shows it at small M: there
        they win some row of the weight shape. Weight shapes may have rows of several sessions: one
        in which such a kernel, timed with a larger M, is much quicker than the winner had none.
        """
        split = np.array([kernel.split_k for kernel in self.kernels]) > 1
        shapes = self.shapes()
        small = (self.m <= _SMALL_M) & split[self.winner]
        with_split: dict[tuple[int, int], list[int]] = {}
        for place in np.flatnonzero(small):
            with_split.setdefault(shapes[place], []).append(int(place))
        mask = np.tile(~split, (len(self), 1))
        for row, shape in enumerate(shapes):
            others = with_split.get(shape, [])
            larger = [self.us[other] for other in others if self.m[other] >= self.m[row]]
            mask[row] |= bool(others) and min(larger, default=np.inf) > _SLOW * self.us[row]
        mask[np.arange(len(self)), self.winner] = True
        return mask

    def shapes(self) -> list[tuple[int, int]]:
        """Return (N, K) of each row: the weight shape, by which cross-validation groups."""
        return list(zip(self.n.tolist(), self.k.tolist(), strict=True))


def locate(name: str) -> Path:
    """Return where a file of published data is looked for; it need not exist."""
    return (knobs.DATA_DIR.get() or _BESIDE) / name


def missing(name: str) -> str | None:
    """Say what to do about a file of published data that is not there; None if it is."""
    path = locate(name)
    if path.is_file():
        return None
    knob = knobs.DATA_DIR.name
    return f"{name} is not in {path.parent}: set {knob} to the folder that has it"


def gpus() -> tuple[ArchSpec, ...]:
    """Return the GPUs that the table has measurements of."""
    names_and_units = sorted({(row["gfx"], int(row["cus"])) for row in _rows()})
    return tuple(arch(name).with_compute_units(units) for name, units in names_and_units)


def read(spec: ArchSpec, family: str) -> Table:
    """Return the rows of classic CK for one family on one GPU; the first of repeated shapes."""
    layouts = _wave_layouts()
    kernels: dict[Kernel, int] = {}
    shapes: dict[tuple[int, int, int], tuple[int, float]] = {}
    for row in _rows():
        where = (row["gfx"], int(row["cus"]), row["family"], row["lib"])
        if where != (spec.name, spec.compute_units, family, "ck"):
            continue
        plain = tuple(row[c] for c in ("tile_m", "tile_n", "tile_k", "pipeline", "scheduler"))
        threads = int(float(row["block_size"]))
        layout = layouts[(family, str(threads), *plain)]
        kernel = Kernel(
            family=family,
            threads=threads,
            tile=(int(row["tile_m"]), int(row["tile_n"]), int(row["tile_k"])),
            scheduler=row["scheduler"],
            pipeline=row["pipeline"],
            waves=layout[:2],
            warp_tile=layout[2:],
            split_k=2 ** int(row["split_k"]),
        )
        index = kernels.setdefault(kernel, len(kernels))
        shape = (int(row["M"]), int(row["N"]), int(row["K"]))
        shapes.setdefault(shape, (index, float(row["us"])))
    extents = np.array(list(shapes), dtype=np.int64).reshape(-1, 3)
    winner = np.array([index for index, _ in shapes.values()], dtype=np.int64)
    us = np.array([time for _, time in shapes.values()])
    m, n, k = extents.T
    return Table(spec, family, tuple(kernels), m, n, k, winner, us)


def folds(table: Table, count: int = 5, seed: int = 0) -> npt.NDArray[np.int64]:
    """Assign each row a fold such that equal (N, K) share one."""
    shapes = sorted(set(table.shapes()))
    order = np.random.RandomState(seed).permutation(len(shapes))
    fold = {shapes[place]: i % count for i, place in enumerate(order)}
    return np.array([fold[shape] for shape in table.shapes()], dtype=np.int64)


def _rows() -> Iterator[dict[str, str]]:
    if (problem := missing(TABLE)) is not None:
        raise FileNotFoundError(f"{problem}, or make it with benchmarks/make_gemm_table.py")
    with gzip.open(locate(TABLE), "rt", newline="") as file:
        yield from csv.DictReader(file)


def _wave_layouts() -> dict[tuple[str, ...], tuple[int, int, int, int]]:
    columns = ("family", "block_size", "tile_m", "tile_n", "tile_k", "pipeline", "scheduler")
    with (_FOLDER / "ck_kernels.csv").open(newline="") as file:
        return {
            tuple(row[c] for c in columns): (
                *(int(row["waves_m"]), int(row["waves_n"])),
                *(int(row["mfma_m"]), int(row["mfma_n"])),
            )
            for row in csv.DictReader(file)
        }
