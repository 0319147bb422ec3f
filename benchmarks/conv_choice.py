# SPDX-License-Identifier: MIT
"""How good the default choice of a convolution is, on problems of which every kernel was timed.

The table (``silicon/conv_forward_gfx950.csv`` below ``CKLANG_DATA_DIR``) has 30 kernels of CK
Tile's tile engine, named by tile and pipeline, on an MI355X. Their warps are those of the default
rule set of CK Tile's dispatcher, which has the same ten tiles (:data:`WARPS`). Their times are
those of channels and features rounded up to multiples of 16 (:data:`GRANULE`), so that is what the
cost model prices. It chooses a kernel; the choice is scored by its measured time, and the speed of
the quickest kernel is the oracle's. Rows named *catalogue* choose among the timed kernels that
cklang's preset has, those named *select* price the preset's own kernels on the problem as a call
has it. Prints Markdown; ``--fit`` also fits the constants of convolutions to all rows and stores
them; ``--folds`` scores the fit in cross-validation. Both need scipy and autograd.

    python benchmarks/conv_choice.py --folds
"""

from __future__ import annotations

import argparse
import csv
import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from data import published

from cklang.arch import ArchSpec, arch
from cklang.families.conv.problem import ConvProblem, conv_problem
from cklang.families.cost_constants import PRODUCTS, Constants, FittedSet, fitted, fitted_sets
from cklang.families.gemm.cost.model import CostModel
from cklang.families.gemm.cost.terms import costs, geometry, step_time, times
from cklang.families.gemm.cost.traits import Columns, Traits, traits_of
from cklang.families.gemm.key import GemmKey, Pipeline
from cklang.families.gemm.pipelines import PIPELINES
from cklang.families.memory_cost import matrix_rate
from cklang.selection.select import select
from cklang.types import bf16

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TABLE = "silicon/conv_forward_gfx950.csv"
GPU = "gfx950"
FOLDS = 5
TWO_TILES = ("64x64x64_compv3", "128x128x64_compv3")
"""The columns nearest to the two tiles of the preset ``essential``, whose K steps are half."""

WARPS = {
    (16, 64): (1, 4, 1),
    (32, 64): (2, 2, 1),
    (64, 64): (4, 1, 1),
    (32, 128): (1, 4, 1),
    (64, 128): (2, 2, 1),
    (128, 64): (8, 2, 1),
    (128, 128): (4, 4, 1),
}
"""Warps of the timed kernels, by rows and columns of the tile (CK Tile,
``dispatcher/codegen/unified_grouped_conv_codegen.py``)."""
WIDTHS = (4, 8)
"""Elements that one access to the image and to the weight moves, from the same rules."""
GRANULE = 16
"""Channels and features of the timed problems are rounded up to a multiple of it: what every kernel
takes for 3 or 24 channels is what 16 or 32 cost, not what single elements would."""
NOT_FITTED = Pipeline.COMPV4
"""Its kernels take the same time for all columns and depths of a tile, so the table's names are
not what was timed."""

FITTED = (
    *("launch", "matrix", "lds", "load", "issue", "latency_prefetch", "serial_prefetch"),
    *("beyond_k", "prologue", "fill", "epilogue", "epilogue_latency", "tail"),
    *("last_level", "memory_warm", "memory_cold", "l2"),
)
"""The constants that forward convolutions can tell; the others stay those of products. All accesses
were wide, so the table cannot tell what each of them costs (``load_issue``)."""
_START = {"beyond_k": 0.5}
"""Where those begin that products have as 0."""
_RIDGE = 2e-3
"""Weight of the distance from the constants of products, in squared logarithms."""
_FAR = 4.0
"""The most that a constant may differ from that of products, as a logarithm."""
_TEMPERATURE = 0.04
"""Relative time over which the fit shares a choice among kernels."""
_REGRET = 20.0
"""Weight of the choice beside the times."""
_TIME = 5.0
_TIME_SCALE = 0.1
"""Relative error from which on a time counts linearly, not quadratically."""
CONSTANTS = Path(__file__).parents[1] / "cklang" / "families" / "fitted"

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """The table."""

    columns: tuple[str, ...]
    """Kernels; those with the shortest loops first, which win where times are predicted equal."""
    problems: tuple[ConvProblem, ...]
    timed: tuple[ConvProblem, ...]
    """The problems with the channels and features that were computed."""
    us: Floats
    """Measured, [problems, columns]."""
    filters: tuple[tuple[str, ...], ...]
    """Of each problem the shape of its weight: rows with one weight share a fold."""

    @classmethod
    def read(cls) -> Measured:
        """Read the table.

        Raises:
            FileNotFoundError: It is not in the folder of published data.
        """
        if (problem := published.missing(TABLE)) is not None:
            raise FileNotFoundError(problem)
        with published.locate(TABLE).open(newline="") as file:
            rows = list(csv.DictReader(file))
        columns = [name for name in rows[0] if "_comp" in name]
        columns.sort(key=lambda name: PIPELINES[_pipeline(name)].least)
        return cls(
            columns=tuple(columns),
            problems=tuple(_problem(row) for row in rows),
            timed=tuple(_problem(row, GRANULE) for row in rows),
            us=np.array([[float(row[name]) for name in columns] for row in rows]),
            filters=tuple((row["K"], row["C"], row["Y"], row["X"]) for row in rows),
        )

    @cached_property
    def spec(self) -> ArchSpec:
        """The GPU."""
        return arch(GPU)

    @cached_property
    def known(self) -> tuple[str, ...]:
        """The columns that have a candidate in cklang's preset: equal tile, warps and pipeline."""
        pool = select(self.problems[0], arch=GPU, preset="catalogue").pool
        kernels = {_column(key) for key in pool.keys}
        return tuple(column for column in self.columns if column in kernels)

    @cached_property
    def folds(self) -> npt.NDArray[np.intp]:
        """The fold of each problem."""
        return self.partition(0)

    def partition(self, seed: int) -> npt.NDArray[np.intp]:
        """Return the fold of each problem, drawn anew for each seed."""
        distinct = sorted(set(self.filters))
        order = np.random.RandomState(seed).permutation(len(distinct))
        fold = {distinct[place]: i % FOLDS for i, place in enumerate(order)}
        return np.array([fold[each] for each in self.filters], np.intp)


def _problem(row: dict[str, str], granule: int = 1) -> ConvProblem:
    n, h, w, y, x = (int(row[name]) for name in ("N", "Hi", "Wi", "Y", "X"))
    c, k = (-(-int(row[name]) // granule) * granule for name in ("C", "K"))
    return conv_problem(
        (n, h, w, c),
        (k, y, x, c),
        spatial=2,
        stride=(int(row["stride_h"]), int(row["stride_w"])),
        padding=(int(row["pad_h"]), int(row["pad_w"])),
        dtype=bf16,
    )


def _pipeline(column: str) -> Pipeline:
    return Pipeline(column.partition("_")[2])


def _tile(column: str) -> tuple[int, int, int]:
    m, n, k = map(int, column.partition("_")[0].split("x"))
    return m, n, k


def _column(key: GemmKey) -> str:
    """Return the column of a kernel of cklang; empty if its like was not timed."""
    a = key.algorithm
    shared = a.split_k > 1 or a.stream_k or a.groups_merged > 1
    same = a.warps == WARPS.get(a.tile[:2]) and not shared
    return f"{'x'.join(map(str, a.tile))}_{a.pipeline.value}" if same else ""


def traits(table: Measured, column: str) -> Traits:
    """Return a timed kernel as the cost model sees it."""
    tile, row = _tile(column), PIPELINES[_pipeline(column)]
    of_a, of_b = (width * bf16.bytes for width in WIDTHS)
    return Traits.of(
        table.spec,
        tile=tile,
        waves=WARPS[tile[:2]],
        rate=matrix_rate(table.spec, ("bf16", "bf16", "f32"), (16, 16, 32)),
        prefetches=True,
        bytes_a=bf16.bytes,
        bytes_b=bf16.bytes,
        bytes_out=bf16.bytes,
        width_a=of_a,
        width_b=of_b,
        loop=(row.step, row.least),
        double_buffer=row.buffers > 1,
    )


def predicted(table: Measured, constants: Constants, rows: npt.NDArray[np.intp]) -> Floats:
    """Return the predicted time of each timed kernel, [rows, columns]."""
    kernels = [traits(table, column) for column in table.columns]
    model = CostModel(kernels, table.spec, constants)
    return np.stack([model.times_of(table.timed[row]) for row in rows])


def selected(table: Measured, constants: Constants, rows: npt.NDArray[np.intp]) -> Floats:
    """Return the predicted time of cklang's kernels where one was timed, else infinity.

    These are the kernels of the preset that can compute the problem as it is published, with their
    own widths of access: what a call chooses among. [rows, columns]
    """
    pool = select(table.problems[0], arch=GPU, preset="catalogue").pool
    place = {name: i for i, name in enumerate(table.columns)}
    column = np.array([place.get(_column(key), -1) for key in pool.keys])
    kernels = np.flatnonzero(column >= 0)
    keys = [pool.keys[kernel] for kernel in kernels]
    model = CostModel([traits_of(key, table.spec) for key in keys], table.spec, constants)
    result = np.full((len(rows), len(table.columns)), np.inf)
    for us, row in zip(result, rows, strict=True):
        problem = table.problems[row]
        legal = pool.legal(problem)[kernels]
        np.minimum.at(us, column[kernels][legal], model.times_of(problem)[legal])
    return result


@dataclass(frozen=True, slots=True)
class Score:
    """Speeds of choices as parts of the oracle's."""

    mean: float
    median: float
    tenth: float
    """The 10th percentile."""
    best: float
    """How often the choice is the oracle's."""

    def __str__(self) -> str:
        return f"{self.mean:.3f} | {self.median:.3f} | {self.tenth:.3f} | {self.best:.1%}"


def score(table: Measured, us: Floats, best: Floats | None = None) -> Score:
    """Score the choice of the least of ``us``, [problems, columns].

    ``best`` is the oracle's time of each problem if that of the table's columns is not.
    """
    share = shares(table, us, best)
    return Score(
        mean=float(share.mean()),
        median=float(np.median(share)),
        tenth=float(np.quantile(share, 0.1)),
        best=float((share == 1.0).mean()),
    )


def shares(table: Measured, us: Floats, best: Floats | None = None) -> Floats:
    """Return the speed of each choice as a part of the oracle's, [problems]."""
    chosen = table.us[np.arange(len(us)), us.argmin(1)]
    share: Floats = (table.us.min(1) if best is None else best) / chosen
    return share


def fit(table: Measured, rows: npt.NDArray[np.intp]) -> Constants:
    """Return the constants with the least expected regret of the choice, and error of the times.

    A choice is shared among kernels by their predicted times; its regret is the logarithm of the
    measured time over the least. Kernels of :data:`NOT_FITTED` do not count.
    """
    import autograd.numpy as tracing
    from autograd import value_and_grad
    from scipy.optimize import minimize

    kept = np.array([_pipeline(column) is not NOT_FITTED for column in table.columns])
    names = [column for column, counts in zip(table.columns, kept, strict=True) if counts]
    columns = Columns.stack([traits(table, name) for name in names])
    log_us = np.log(table.us[rows][:, kept])
    regret = log_us - log_us.min(1)[:, None]
    m, n, k, products, *unique = np.array(
        [
            (each.m, each.n, each.k, each.products, *each.unique_fraction)
            for each in (table.timed[row] for row in rows)
        ]
    ).T[:, :, None]
    fraction: Any = tuple(unique)
    counts = geometry(columns, table.spec, m, n, k, products, fraction)
    start = asdict(fitted(table.spec, PRODUCTS).constants) | _START

    def constants(theta: Floats) -> Constants:
        moved = {name: start[name] * tracing.exp(theta[i]) for i, name in enumerate(FITTED)}
        return Constants(**{**start, **moved})

    def loss(theta: Floats) -> Floats:
        c = constants(theta)
        cost = costs(columns, table.spec, c)
        full, last = step_time(cost, columns.occupancy), step_time(cost, counts.last)
        log_predicted = tracing.log(times(columns, counts, cost, c, full, last).total)
        z = -log_predicted / _TEMPERATURE
        weights = tracing.exp(z - tracing.max(z, 1)[:, None])
        weights = weights / tracing.sum(weights, 1)[:, None]
        expected = tracing.mean(tracing.sum(weights * regret, 1))
        error = tracing.sqrt(_TIME_SCALE**2 + (log_predicted - log_us) ** 2)
        near_start = _RIDGE * tracing.sum(theta**2)
        total: Floats = _REGRET * expected + _TIME * tracing.mean(error) + near_start
        return total

    zeros = np.zeros(len(FITTED))
    bounds = [(-_FAR, _FAR)] * len(FITTED)
    minimum = minimize(value_and_grad(loss), zeros, jac=True, method="L-BFGS-B", bounds=bounds)
    return Constants(
        **{name: float(f"{v:.5g}") for name, v in asdict(constants(minimum.x)).items()}
    )


@dataclass(frozen=True, slots=True)
class Predictions:
    """Predicted times of all problems by one set of constants, [problems, columns]."""

    timed: Floats
    """Of the kernels as they were timed."""
    own: Floats
    """Of cklang's kernels on the problems as published: :func:`selected`."""


def in_sample(table: Measured, constants: Constants) -> Predictions:
    """Return predictions of all problems by one set of constants."""
    every = np.arange(len(table.problems))
    return Predictions(
        timed=predicted(table, constants, every), own=selected(table, constants, every)
    )


def out_of_fold(table: Measured) -> Predictions:
    """Return predictions by constants fitted without the weights of the predicted rows."""
    result = Predictions(timed=np.empty_like(table.us), own=np.empty_like(table.us))
    for fold in range(FOLDS):
        rows = np.flatnonzero(table.folds == fold)
        constants = fit(table, np.flatnonzero(table.folds != fold))
        result.timed[rows] = predicted(table, constants, rows)
        result.own[rows] = selected(table, constants, rows)
    return result


def _only(table: Measured, us: Floats, columns: Sequence[str]) -> Floats:
    kept = np.isin(table.columns, columns)
    return np.where(kept, us, np.inf)


def predictions(table: Measured, *, with_fit: bool) -> dict[str, Predictions]:
    """Return the predictions to be judged, by how they came about."""
    result = {
        "constants of products": in_sample(table, fitted(table.spec, PRODUCTS).constants),
        "in sample": in_sample(table, fitted(table.spec, "conv").constants),
    }
    if with_fit:
        result["out of fold"] = out_of_fold(table)
        as_published = replace(table, timed=table.problems)
        result["out of fold, channels as published"] = out_of_fold(as_published)
    return result


def scores(table: Measured, by_name: Mapping[str, Predictions]) -> dict[str, Score]:
    """Return the rows of the table of choices."""
    by_products = by_name["constants of products"].timed
    result = {
        "the better of two tiles, always": score(table, _only(table, table.us, TWO_TILES)),
        "two tiles, constants of products": score(table, _only(table, by_products, TWO_TILES)),
        "catalogue, the best": score(table, _only(table, table.us, table.known)),
    }
    for name, each in by_name.items():
        result[f"30 kernels, {name}"] = score(table, each.timed)
        result[f"catalogue, {name}"] = score(table, _only(table, each.timed, table.known))
        result[f"select, {name}"] = score(table, each.own)
    return result


def time_errors(table: Measured, us: Floats) -> dict[str, tuple[float, float, float]]:
    """Return the median, mean and 90th percentile of the relative error of times, by kernels."""
    error = np.abs(us / table.us - 1.0)
    winners = table.us == table.us.min(1)[:, None]
    without = [_pipeline(column) is not NOT_FITTED for column in table.columns]
    kinds = {
        "the best kernel": error[winners],
        "catalogue": error[:, np.isin(table.columns, table.known)],
        "without compv4": error[:, without],
        "30 kernels": error,
    }
    return {
        name: (float(np.median(e)), float(e.mean()), float(np.quantile(e, 0.9)))
        for name, e in kinds.items()
    }


SHORT_US = 10.0


def repeats(table: Measured) -> dict[str, tuple[float, float]]:
    """Return the median and 90th percentile of how far times of equal kernels are apart.

    These are the two smaller tiles of compv4 with 64 columns, of which depth 64 and 128 are one
    kernel (:data:`NOT_FITTED`), for short and for longer problems.
    """
    times_of = {name: table.us[:, i] for i, name in enumerate(table.columns)}
    apart = np.array(
        [
            np.abs(np.log(times_of[f"{rows}x64x64_compv4"] / times_of[f"{rows}x64x128_compv4"]))
            for rows in (16, 32)
        ]
    )
    short = table.us.min(1) < SHORT_US
    kinds = {
        f"best below {SHORT_US:.0f} µs": apart[:, short],
        f"above {SHORT_US:.0f} µs": apart[:, ~short],
    }
    return {
        name: (float(np.median(each)), float(np.quantile(each, 0.9)))
        for name, each in kinds.items()
    }


def fitted_set(table: Measured) -> FittedSet:
    """Fit to all rows; the error is that of the choice, out of fold."""
    from fit_cost_model import spread_of

    us = out_of_fold(table).timed
    held_out = score(table, us)
    winner = table.us == table.us.min(1)[:, None]
    error = np.abs(us / table.us - 1.0)[winner & np.isfinite(us)]
    known = np.isin(table.columns, table.known)
    spread = spread_of([(us[:, known], table.us[:, known].argmin(1))])
    return FittedSet(
        gpu=GPU,
        compute_units=table.spec.compute_units,
        family="conv",
        constants=fit(table, np.arange(len(table.problems))),
        provenance={
            "product": table.spec.product,
            "data": "CK Tile's tile engine, grouped convolution forward (rocm-libraries, MIT)",
            "rows": len(table.problems),
            "element_types": "bf16",
            "script": "benchmarks/conv_choice.py",
            "validation": f"{FOLDS} folds grouped by the shape of the weight; speed of the choice "
            "over that of the best kernel",
        },
        error={
            "median": round(float(np.median(error)), 4),
            "spread": round(spread, 4),
            **{f"{name} share": round(value, 4) for name, value in asdict(held_out).items()},
        },
    )


def main() -> None:
    """Print the scores; fit and store if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fit", action="store_true", help="fit to all rows and store")
    parser.add_argument("--folds", action="store_true", help="cross-validate the fit too")
    options = parser.parse_args()
    table = Measured.read()
    if options.fit:
        path = CONSTANTS / f"{GPU}_{table.spec.compute_units}_conv.json"
        path.write_text(json.dumps(fitted_set(table).to_json(), indent=2) + "\n")
        fitted_sets.cache_clear()
    by_name = predictions(table, with_fit=options.folds)
    print(f"{len(table.problems)} problems, {len(table.columns)} kernels\n")
    print("| share of the best kernel's speed | mean | median | 10th percentile | best |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, each in scores(table, by_name).items():
        print(f"| {name} | {each} |")
    print("\n| relative error of a time | median | mean | 90th percentile |")
    print("| --- | ---: | ---: | ---: |")
    for name, prediction in by_name.items():
        for kernels, errors in time_errors(table, prediction.timed).items():
            cells = " | ".join(f"{error:.1%}" for error in errors)
            print(f"| {kernels}, {name} | {cells} |")
    print("\n| one kernel timed twice, apart by | median | 90th percentile |")
    print("| --- | ---: | ---: |")
    for name, (median, tenth) in repeats(table).items():
        print(f"| {name} | {median:.1%} | {tenth:.1%} |")


if __name__ == "__main__":
    main()
