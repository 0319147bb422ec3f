# SPDX-License-Identifier: MIT
"""A ranker of kernels that learned from published winners (LightGBM, the ``[tune]`` extra).

It starts from the cost model, whose predicted times make a soft minimum over the candidates, and
adds to each candidate what boosted trees make of the model's terms for it and of how far in log
shape the nearest problem is that a kernel of its tile won. Training and choosing share the
functions here. A ranker knows one kind of product on one GPU; of others it says nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cklang.arch import ArchSpec
from cklang.errors import error
from cklang.families.cost_constants import Constants
from cklang.families.gemm.cost.terms import costs, geometry, step_time, times
from cklang.families.gemm.cost.traits import Columns, Floats
from cklang.families.gemm.key import Signature
from cklang.types import Kind

if TYPE_CHECKING:
    from cklang.families.gemm.cost.model import CostModel, Extents

__all__ = [
    "FEATURES",
    "SCHEMA_VERSION",
    "LearnedRanker",
    "Wins",
    "features",
    "identities",
    "learned",
    "prior",
    "read_ranker",
]

SCHEMA_VERSION = 1
_FOLDER = Path(__file__).parents[1] / "fitted" / "rankers"
_FAR = 12.0
"""The distance to a problem that is not there: more than between any two in the tables."""
_LEAST_LOGIT = -30.0
_SCALE_K = 128

FEATURES = (
    *("log total", "log total over least"),
    *("steps", "prologues", "epilogues", "tail", "memory", "l2", "split"),
    *("log steps", "log workgroups", "log queue"),
    *("tile_m", "tile_n", "tile_k", "split_k", "prefetches"),
    *("nearest win", "nearest win less the least"),
)
"""What the trees see of a candidate; terms are shares of the total."""

Identity = tuple[int, int, int, int, int]
"""Tile, split-K pieces, whether it prefetches: as what kernel of a table a candidate counts."""


@dataclass(frozen=True, slots=True)
class Wins:
    """Problems and the kernels that won them: [wins, 3] of log M, N, K, and [wins] of kernels."""

    shapes: Floats
    winner: npt.NDArray[np.int64]
    """Index into ``kernels``."""
    kernels: tuple[Identity, ...]

    def distances(
        self,
        shapes: Floats,
        kernels: Sequence[Identity],
        *,
        other_weights: bool = False,
    ) -> Floats:
        """Return how far from each problem the nearest is that each kernel won.

        Args:
            shapes: log M, N, K of the problems, [problems, 3].
            kernels: The candidates.
            other_weights: Whether wins with the (N, K) of the problem itself do not count: the
                problems that a ranker learns from must not know their own neighbours.

        Returns:
            [problems, kernels], Euclidean; 12 for a kernel that won nothing.
        """
        distances = np.full((len(shapes), len(kernels)), _FAR)
        for identity in set(kernels) & set(self.kernels):
            won = self.shapes[self.winner == self.kernels.index(identity)]
            columns = [place for place, each in enumerate(kernels) if each == identity]
            distances[:, columns] = _nearest(shapes, won, other_weights=other_weights)[:, None]
        return distances


def _nearest(shapes: Floats, won: Floats, *, other_weights: bool) -> Floats:
    least = np.full(len(shapes), _FAR)
    if not len(won):
        return least
    for start in range(0, len(shapes), 512):
        block = shapes[start : start + 512, None]
        apart = np.sqrt(np.square(block - won[None]).sum(2))
        if other_weights:
            apart[(block[:, :, 1:] == won[None, :, 1:]).all(2)] = _FAR
        least[start : start + 512] = np.minimum(apart.min(1), _FAR)
    return least


def identities(t: Columns) -> list[Identity]:
    """Return the identity of each kernel."""
    rows = np.column_stack([t.tile_m, t.tile_n, t.tile_k, t.split_k, t.prefetches])
    return [(int(m), int(n), int(k), int(s), int(p)) for m, n, k, s, p in rows]


def features(
    t: Columns,
    spec: ArchSpec,
    c: Constants,
    extents: tuple[Floats, Floats, Floats],
    distances: Floats,
) -> tuple[Floats, Floats]:
    """Return the features of the trees, and the predicted times in µs.

    Args:
        t: The candidates.
        spec: The GPU.
        c: The constants of the cost model.
        extents: M, N, K of the problems, each [problems, 1].
        distances: Of each candidate to its nearest win, [problems, kernels].

    Returns:
        [problems, kernels, FEATURES] and [problems, kernels].
    """
    g = geometry(t, spec, *extents)
    cost = costs(t, spec, c)
    terms = times(t, g, cost, c, step_time(cost, t.occupancy), step_time(cost, g.last))
    total = terms.total
    parts = (terms.steps, terms.prologues, terms.epilogues, terms.tail, terms.memory, terms.l2)
    columns = [
        np.log(total),
        np.log(total / total.min(1, keepdims=True)),
        *(part / total for part in (*parts, terms.split)),
        *(np.log(count) for count in (g.steps, g.workgroups, g.queue)),
        *(t.tile_m, t.tile_n, t.tile_k, t.split_k, t.prefetches),
        distances,
        distances - distances.min(1, keepdims=True),
    ]
    return np.stack([np.broadcast_to(each, total.shape) for each in columns], 2), total


def prior(us: Floats, temperature: float) -> Floats:
    """Return the logits that the cost model gives the candidates, [problems, kernels]; best 0."""
    relative = np.log(us / us.min(1, keepdims=True))
    logits: Floats = np.maximum(-relative / temperature, _LEAST_LOGIT)
    return logits


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedRanker:
    """What was learned for one GPU, where it comes from, and how good it is."""

    gpu: str
    compute_units: int
    provenance: Mapping[str, Any]
    """Data, families, rows, script, settings."""
    score: Mapping[str, float]
    """Of its choices in cross-validation grouped by (N, K)."""
    temperature: float
    wins: Wins
    trees: str
    """LightGBM's text form."""

    def logits(self, model: CostModel, problem: Extents) -> Floats:
        """Return how much each kernel of a cost model is preferred, [kernels]; the most is best.

        Raises:
            CkUnsupportedError: N012, LightGBM is not installed.
        """
        shape = np.array([[problem.m, problem.n, max(problem.k, 1)]], np.float64)
        distances = self.wins.distances(np.log(shape), identities(model.columns))
        extents = (shape[:, :1], shape[:, 1:2], shape[:, 2:])
        feature_rows, us = features(model.columns, model.spec, model.constants, extents, distances)
        scores: Floats = prior(us, self.temperature)[0] + _booster(self.trees).predict(
            feature_rows[0], num_threads=1
        )
        return scores

    def to_json(self) -> dict[str, Any]:
        """Return the form that :func:`read_ranker` reads."""
        shapes = np.exp(self.wins.shapes).round().astype(int)
        return {
            "version": SCHEMA_VERSION,
            "gpu": self.gpu,
            "compute_units": self.compute_units,
            "features": list(FEATURES),
            "provenance": dict(self.provenance),
            "score": dict(self.score),
            "temperature": self.temperature,
            "kernels": [list(each) for each in self.wins.kernels],
            "wins": np.column_stack([shapes, self.wins.winner]).tolist(),
            "trees": self.trees,
        }


def read_ranker(name: str, text: str) -> LearnedRanker:
    """Read a ranker; ``name`` stands in errors.

    Raises:
        CkValueError: N011 for a corrupt record, K003 for another schema version.
    """
    try:
        data = json.loads(text)
        version = data["version"]
        if version == SCHEMA_VERSION:
            return _ranker(data)
    except (ValueError, KeyError, TypeError, IndexError) as problem:
        raise error("N011", name=name, problem=repr(problem)) from problem
    raise error("K003", what="learned ranker", got=version, want=SCHEMA_VERSION)


def _ranker(data: Mapping[str, Any]) -> LearnedRanker:
    if tuple(data["features"]) != FEATURES:
        raise ValueError("it learned from other features")
    kernels = [(int(m), int(n), int(k), int(s), int(p)) for m, n, k, s, p in data["kernels"]]
    wins = np.array(data["wins"], np.int64).reshape(-1, 4)
    if not ((wins[:, :3] > 0).all() and ((wins[:, 3] >= 0) & (wins[:, 3] < len(kernels))).all()):
        raise ValueError("its wins are no problems and kernels")
    if not (isinstance(data["trees"], str) and float(data["temperature"]) > 0):
        raise ValueError("it has no trees or no temperature")
    return LearnedRanker(
        gpu=str(data["gpu"]),
        compute_units=int(data["compute_units"]),
        provenance=dict(data["provenance"]),
        score=dict(data["score"]),
        temperature=float(data["temperature"]),
        wins=Wins(np.log(wins[:, :3]), wins[:, 3], tuple(kernels)),
        trees=data["trees"],
    )


def learned(spec: ArchSpec, signature: Signature) -> LearnedRanker | None:
    """Return the ranker for products of a signature on a GPU, or None: nothing was learned of it.

    What was learned are products of 8-bit floats with a scale for each 128 elements of K.
    """
    eight = all(
        d.kind is Kind.FLOAT and d.bits == 8 for d in (signature.dtype_a, signature.dtype_b)
    )
    if not eight or signature.block_k != _SCALE_K:
        return None
    return _of_gpu(spec.name, spec.compute_units)


@cache
def _of_gpu(name: str, units: int) -> LearnedRanker | None:
    path = _FOLDER / f"{name}_{units}.json"
    return read_ranker(path.name, path.read_text()) if path.is_file() else None


@cache
def _booster(trees: str) -> Any:
    try:
        import lightgbm
    except ImportError as problem:
        raise error("N012") from problem
    return lightgbm.Booster(model_str=trees)
