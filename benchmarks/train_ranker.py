# SPDX-License-Identifier: MIT
"""Train the learned rankers on published winners; store them with their cross-validated score.

Trees are boosted on the likelihood of the winner under a softmax over all candidates, from the cost
model's own soft minimum on (`cklang.families.gemm.learned` has features and prior). Rows weigh
less the more there are of their winner and of their (N, K), so that frequent kernels do not hide
the rest.
A kernel with split-K that a session seems not to have searched is less likely, not a loser.
In cross-validation constants, trees and wins come from the other folds; a row that is learned from
does not see wins of its own (N, K). Needs lightgbm, scipy and autograd.

    python benchmarks/train_ranker.py
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import numpy.typing as npt
from data.published import Table, folds, gpus, read
from fit_cost_model import fold_constants_of, group_sizes

from cklang.families.cost_constants import Constants, fitted
from cklang.families.gemm.cost.traits import Columns
from cklang.families.gemm.learned import FEATURES, LearnedRanker, Wins, features, identities, prior

Floats = npt.NDArray[np.float64]

FAMILY = "a8w8_blockscale"
GPUS = (("gfx942", 304), ("gfx950", 256))
LEARNED = Path(__file__).parents[1] / "cklang" / "tuning" / "learned"

TEMPERATURE = 0.05
"""Of the prior, in relative time."""
_UNSEARCHED = 2.0
"""Logits that a kernel loses in training where its session seems not to have searched it."""
_BY_WINNER, _BY_SHAPE = 0.4, 0.3
"""Exponents of the weights."""
_SMALL_M = 1024
_LARGE_ROWS = 3000
_IMPOSSIBLE = 1e4
SETTINGS: dict[str, Any] = {
    "learning_rate": 0.05,
    "num_leaves": 15,
    "min_data_in_leaf": 20,
    "min_sum_hessian_in_leaf": 5.0,
    "lambda_l2": 1.0,
    "feature_fraction": 0.8,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "seed": 0,
    "deterministic": True,
    "num_threads": 1,
    "verbose": -1,
}
ROUNDS = 150


def wins_of(table: Table) -> Wins:
    """Return the problems of a table with their winners, thinned to four M per octave."""
    kept: dict[tuple[int, ...], int] = {}
    for row in np.argsort(table.m, kind="stable"):
        octave = round(4 * float(np.log2(table.m[row])))
        kept.setdefault((*map(int, (table.n[row], table.k[row], table.winner[row])), octave), row)
    rows = np.sort(np.array(list(kept.values())))
    known = identities(_columns(table))
    return Wins(_log_shapes(table.take(rows)), table.winner[rows], tuple(known))


def _columns(table: Table) -> Columns:
    return Columns.stack([kernel.traits(table.spec) for kernel in table.kernels])


def _log_shapes(table: Table) -> Floats:
    return np.log(np.stack([table.m, table.n, table.k], 1).astype(np.float64))


def features_and_prior(
    table: Table, c: Constants, wins: Wins, *, training: bool
) -> tuple[Floats, Floats]:
    """Return the features and the prior's logits of all candidates of all rows."""
    t = _columns(table)
    shapes = _log_shapes(table)
    distances = wins.distances(shapes, identities(t), other_weights=training)
    m, n, k = (np.exp(shapes[:, axis : axis + 1]).round() for axis in range(3))
    x, us = features(t, table.spec, c, (m, n, k), distances)
    return x, prior(us, TEMPERATURE)


def train(table: Table, c: Constants, wins: Wins) -> lightgbm.Booster:
    """Boost trees on the winners of a table."""
    table = _thinned(table)
    rows = np.arange(len(table))
    won = np.zeros((len(table), len(table.kernels)))
    won[rows, table.winner] = 1.0
    weight = group_sizes(table.winner.tolist()) ** -_BY_WINNER
    weight *= group_sizes(table.shapes()) ** -_BY_SHAPE
    weight = (weight / weight.mean())[:, None]
    handicap = np.where(table.legal(), 0.0, -_IMPOSSIBLE) - _UNSEARCHED * ~table.searched()
    x, start = features_and_prior(table, c, wins, training=True)
    data = lightgbm.Dataset(
        x.reshape(-1, x.shape[2]),
        label=won.ravel(),
        init_score=start.ravel(),
        feature_name=[name.replace(" ", "_") for name in FEATURES],
        params=SETTINGS,
    )

    def gradients(scores: Floats, _: lightgbm.Dataset) -> tuple[Floats, Floats]:
        logits = scores.reshape(won.shape) + handicap
        share = np.exp(logits - logits.max(1, keepdims=True))
        share /= share.sum(1, keepdims=True)
        slope = (share - won) * weight
        return slope.ravel(), (np.maximum(share * (1.0 - share), 1e-3) * weight).ravel()

    return lightgbm.train({**SETTINGS, "objective": gradients}, data, num_boost_round=ROUNDS)


def _thinned(table: Table) -> Table:
    """All small problems and a sample of the large ones, which are alike."""
    few = np.random.RandomState(0).permutation(len(table))[:_LARGE_ROWS]
    return table.take(np.union1d(few, np.flatnonzero(table.m <= _SMALL_M)))


def out_of_fold_logits(table: Table, constants: Sequence[Constants]) -> Floats:
    """Return the logits of all candidates, [rows, kernels], by trees that never saw the (N, K)."""
    assigned = folds(table, len(constants))
    logits = np.zeros((len(table), len(table.kernels)))
    for fold, c in enumerate(constants):
        test, rest = table.take(assigned == fold), table.take(assigned != fold)
        wins = wins_of(rest)
        trees = train(rest, c, wins)
        x, start = features_and_prior(test, c, wins, training=False)
        scores = trees.predict(x.reshape(-1, x.shape[2]), num_threads=1)
        logits[assigned == fold] = start + np.asarray(scores).reshape(start.shape)
    return np.where(table.legal(), logits, -np.inf)


def learn(table: Table, constants: Sequence[Constants]) -> LearnedRanker:
    """Train on a whole table, and cross-validate."""
    c = fitted(table.spec).constants
    wins = wins_of(table)
    ranker = LearnedRanker(
        gpu=table.spec.name,
        compute_units=table.spec.compute_units,
        provenance={
            "product": table.spec.product,
            "data": "AITER tuned tables (MIT licence), August 2026: benchmarks/make_gemm_table.py",
            "family": table.family,
            "rows": len(table),
            "weight_shapes": len(set(table.shapes())),
            "script": "benchmarks/train_ranker.py",
            "validation": "5 folds grouped by (N, K)",
        },
        score={},
        temperature=TEMPERATURE,
        wins=wins,
        trees=train(table, c, wins).model_to_string(),
    )
    order = np.argsort(-out_of_fold_logits(table, constants), axis=1, kind="stable")
    place = (order == table.winner[:, None]).argmax(1)
    score = {f"winner among the first {n}": float((place < n).mean()) for n in (1, 5)}
    return replace(ranker, score={name: round(value, 4) for name, value in score.items()})


def main() -> None:
    """Train and store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", help="one GPU, as gfx942/304; both if left out")
    parser.add_argument("--folds", type=Path, help="where constants of folds are kept")
    options = parser.parse_args()
    LEARNED.mkdir(exist_ok=True)
    for spec in gpus():
        name = f"{spec.name}/{spec.compute_units}"
        if (spec.name, spec.compute_units) in GPUS and options.gpu in (None, name):
            table = read(spec, FAMILY)
            _, constants = fold_constants_of([table], options.folds)
            ranker = learn(table, constants)
            path = LEARNED / f"{name.replace('/', '_')}.json"
            path.write_text(json.dumps(ranker.to_json()) + "\n")
            print(name, ranker.score)


if __name__ == "__main__":
    main()
