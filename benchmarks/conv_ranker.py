# SPDX-License-Identifier: MIT
"""Whether a learned ranker chooses convolutions better than the cost model: a trial, none is kept.

Trees with the features of the ranker of products (`cklang.families.gemm.learned`) begin from the
cost model's soft minimum over the timed kernels of the catalogue (`conv_choice`). Two losses are
tried: the likelihood of the winner, as for products, and the expected regret, since here the time
of each kernel is known. Constants, trees and wins come from the other folds, which are grouped by
the shape of the weight; a row that is learned from does not see wins of its own (N, K). All is done
for several partitions into folds, and the gain over the cost model has a standard error: weights
are drawn with replacement, each with all its rows. Prints Markdown. Needs lightgbm, scipy and
autograd.

    python benchmarks/conv_ranker.py
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import lightgbm
import numpy as np
import numpy.typing as npt
from conv_choice import FOLDS, Measured, fit, predicted, shares, traits
from train_ranker import SETTINGS, TEMPERATURE

from cklang.families.cost_constants import Constants
from cklang.families.gemm.cost.traits import Columns
from cklang.families.gemm.learned import Wins, features, identities, prior

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
Slopes = Callable[[Floats, Floats], Floats]
"""From the shares that a ranker gives the kernels, and their regrets, the gradient of its loss."""

_LEAST_CURVATURE = 1e-3
PARTITIONS = 5
_DRAWS = 2000


def of_likelihood(share: Floats, regret: Floats) -> Floats:
    """Return the gradient of the winner's negative logarithmic likelihood."""
    slope: Floats = share - (regret == 0.0)
    return slope


def of_regret(share: Floats, regret: Floats) -> Floats:
    """Return the gradient of the expected regret, in units of the regret that counts as one."""
    expected = (share * regret).sum(1, keepdims=True)
    slope: Floats = share * (regret - expected) / _REGRET_SCALE
    return slope


_REGRET_SCALE = 0.05
LOSSES: dict[str, Slopes] = {"likelihood": of_likelihood, "regret": of_regret}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How trees are grown: less than for products, of which there are fifty times as many rows."""

    loss: str
    rounds: int
    leaves: int

    @property
    def parameters(self) -> dict[str, Any]:
        """Those of LightGBM."""
        return {**SETTINGS, "num_leaves": self.leaves}

    def __str__(self) -> str:
        return f"ranker, {self.loss}, {self.rounds} trees of {self.leaves} leaves"


TRIED = tuple(
    Setting(loss=loss, rounds=rounds, leaves=leaves)
    for loss in LOSSES
    for rounds, leaves in ((20, 4), (60, 4), (150, 15))
)


def known_only(table: Measured) -> Measured:
    """Return the table with the kernels of the catalogue alone."""
    kept = np.isin(table.columns, table.known)
    return replace(table, columns=tuple(np.array(table.columns)[kept]), us=table.us[:, kept])


def inputs(
    table: Measured, c: Constants, rows: Rows, wins: Wins, *, training: bool
) -> tuple[Floats, Floats]:
    """Return the features of all kernels on some problems, and the logits that trees begin from."""
    columns = Columns.stack([traits(table, name) for name in table.columns])
    log_shapes = shapes(table, rows)
    distances = wins.distances(log_shapes, identities(columns), other_weights=training)
    m, n, k = (np.exp(log_shapes[:, axis : axis + 1]).round() for axis in range(3))
    x, _ = features(columns, table.spec, c, (m, n, k), distances)
    return x, prior(predicted(table, c, rows), TEMPERATURE)


def shapes(table: Measured, rows: Rows) -> Floats:
    """Return log M, N, K of problems, [rows, 3]."""
    return np.log([[p.m, p.n, p.k] for p in (table.timed[row] for row in rows)])


def wins_of(table: Measured, rows: Rows) -> Wins:
    """Return problems with their winners."""
    columns = Columns.stack([traits(table, name) for name in table.columns])
    winner = table.us[rows].argmin(1).astype(np.int64)
    return Wins(shapes(table, rows), winner, tuple(identities(columns)))


def train(table: Measured, c: Constants, rows: Rows, wins: Wins, how: Setting) -> lightgbm.Booster:
    """Boost trees on the times of some problems."""
    x, start = inputs(table, c, rows, wins, training=True)
    us = table.us[rows]
    regret = np.log(us / us.min(1, keepdims=True))
    data = lightgbm.Dataset(
        x.reshape(-1, x.shape[2]),
        label=(regret == 0.0).ravel(),
        init_score=start.ravel(),
        params=how.parameters,
    )

    def gradients(scores: Floats, _: lightgbm.Dataset) -> tuple[Floats, Floats]:
        logits = scores.reshape(us.shape)
        share = np.exp(logits - logits.max(1, keepdims=True))
        share /= share.sum(1, keepdims=True)
        slope = LOSSES[how.loss](share, regret)
        return slope.ravel(), np.maximum(share * (1.0 - share), _LEAST_CURVATURE).ravel()

    parameters = {**how.parameters, "objective": gradients}
    return lightgbm.train(parameters, data, num_boost_round=how.rounds)


@dataclass(frozen=True, slots=True)
class Trial:
    """One ranker against the cost model, both out of fold, over all partitions."""

    share: Floats
    """Speed of its choices as parts of the oracle's, [partitions, problems]."""
    gain: float
    """Of the mean share over the cost model's."""
    error: float
    """Standard error of the gain."""

    def __str__(self) -> str:
        each = [self.share.mean(1), np.median(self.share, 1), np.quantile(self.share, 0.1, axis=1)]
        cells = [f"{values.mean():.4f}" for values in each]
        return " | ".join([*cells, f"{self.gain:+.4f} ± {self.error:.4f}"])


def logits_of(table: Measured, constants: Sequence[Constants], folds: Rows, how: Setting) -> Floats:
    """Return the logits of all kernels by trees that never saw the weight, [problems, columns]."""
    result = np.empty_like(table.us)
    for fold, c in enumerate(constants):
        rows, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        wins = wins_of(table, rest)
        trees = train(table, c, rest, wins, how)
        x, start = inputs(table, c, rows, wins, training=False)
        grown = np.asarray(trees.predict(x.reshape(-1, x.shape[2]), num_threads=1))
        result[rows] = start + grown.reshape(start.shape)
    return result


def shares_of_partition(table: Measured, folds: Rows) -> Iterator[Floats]:
    """Yield the shares of the cost model's choices, then those of every setting."""
    catalogue, best = known_only(table), table.us.min(1)
    constants = [fit(table, np.flatnonzero(folds != fold)) for fold in range(FOLDS)]
    by_model = np.empty_like(catalogue.us)
    for fold, c in enumerate(constants):
        rows = np.flatnonzero(folds == fold)
        by_model[rows] = predicted(catalogue, c, rows)
    yield shares(catalogue, by_model, best)
    for how in TRIED:
        yield shares(catalogue, -logits_of(catalogue, constants, folds, how), best)


def standard_error(table: Measured, gain: Floats) -> float:
    """Return the standard error of the mean of gains, [problems]: weights are drawn anew."""
    weights = {each: i for i, each in enumerate(sorted(set(table.filters)))}
    group = np.array([weights[each] for each in table.filters])
    sums, counts = np.bincount(group, gain), np.bincount(group)
    drawn = np.random.default_rng(0).integers(0, len(sums), (_DRAWS, len(sums)))
    return float((sums[drawn].sum(1) / counts[drawn].sum(1)).std())


def trials(table: Measured) -> dict[str, Trial]:
    """Return the cost model and every setting of the ranker, out of fold."""
    folds = [table.partition(seed) for seed in range(PARTITIONS)]
    share = np.array([list(shares_of_partition(table, each)) for each in folds]).swapaxes(0, 1)
    gain = (share - share[0]).mean(1)
    names = ["cost model", *(str(how) for how in TRIED)]
    return {
        name: Trial(share[i], float(gain[i].mean()), standard_error(table, gain[i]))
        for i, name in enumerate(names)
    }


def main() -> None:
    """Print the scores."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    print("| share of the best kernel's speed | mean | median | 10th percentile | gain |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, each in trials(Measured.read()).items():
        print(f"| {name} | {each} |")


if __name__ == "__main__":
    main()
