# SPDX-License-Identifier: MIT
"""Predict the time of kernels on a problem, rank them, and say what the time is made of.

An operand that is computed costs more: an element of A is computed by each tile of its row, one of
B by each tile of its column. A load of the operand's own dtype is charged in any case; the
instructions of the function are charged beside it, and the bytes that its reads have beyond that.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from cklang.arch import ArchSpec, arch
from cklang.dims import require_integer
from cklang.errors import error
from cklang.families.cost_constants import Constants, fitted
from cklang.families.function_work import instructions, vector_time
from cklang.families.gemm.cost.terms import (
    Geometry,
    Times,
    costs,
    geometry,
    loop_steps,
    needed_steps,
    step_time,
    times,
)
from cklang.families.gemm.cost.traits import Columns, Floats, Resources, Traits, traits_of
from cklang.families.gemm.key import DKind, DOperand, GemmKey
from cklang.families.gemm.problem import Problem
from cklang.fusion.functions import Functions

WHOLE = (1.0, 1.0)
"""No element of A or B is there twice."""

Extent = float | Floats
"""A length of a problem: one for all kernels, or one for each."""


class Lengths(NamedTuple):
    """The extents of a problem, and the part of A and of B that is no repetition of elements."""

    m: Extent
    n: Extent
    k: Extent
    products: Extent = 1.0
    unique_fraction: tuple[float, float] = WHOLE


class Extents(Protocol):
    """Anything with the extents of a GEMM: a problem of the runtime, or a :class:`GemmShape`."""

    @property
    def m(self) -> int:
        """Rows of the result."""

    @property
    def n(self) -> int:
        """Columns of the result."""

    @property
    def k(self) -> int:
        """Length of the sums."""

    @property
    def products(self) -> int:
        """How many such products are computed in one launch."""


def _product(problem: Extents, merged: int) -> tuple[int, int, int, int]:
    """Return how many products a kernel that merges so many groups computes, and M, N, K of each.

    Only a convolution has groups, and says so: :meth:`cklang.dispatch.ConvProblem.product`.
    """
    if merged > 1 and (product := getattr(problem, "product", None)) is not None:
        extents: tuple[int, int, int, int] = product(merged)
        return extents
    return problem.products, problem.m, problem.n, problem.k


def _unique_fraction(problem: Extents) -> tuple[float, float]:
    """Return which part of A and B is stored; in a convolution taps read elements again."""
    fraction: tuple[float, float] = getattr(problem, "unique_fraction", WHOLE)
    return fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmShape:
    """The extents of a GEMM: A [m, k] by B [k, n], or of several of them in one launch."""

    m: int
    n: int
    k: int
    products: int = 1

    def __post_init__(self) -> None:
        for name in ("m", "n", "k", "products"):
            require_integer(name, getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A prediction, term by term."""

    us: float
    """Predicted time in µs: the sum of the terms."""
    terms: Mapping[str, float]
    """In µs; what each adds to the total."""
    workgroups: int
    occupancy: int
    """Workgroups that share a compute unit."""
    rounds: int
    """Waves of workgroups over the compute units, the last partial one included."""
    last_round: float
    """How full the last round is, from 0 to 1."""
    steps: int
    """K steps of one workgroup."""
    flops: float
    """Multiplications and additions of the problem."""
    padded_flops: float
    """The same with all tiles full: what the matrix instructions do."""
    waves: int
    """Waves of all workgroups."""
    bytes_loaded: float
    """A and B as the workgroups ask for them, tile by tile, before any cache; no padding."""
    bytes_least: float
    """A, B and the result once each."""

    @property
    def padding(self) -> float:
        """Part of the matrix instructions that works on padding, from 0 to 1."""
        return 1.0 - self.flops / self.padded_flops


class CostModel:
    """Prices of some kernels on one GPU, computed once; then a problem costs microseconds.

    Raises:
        CkValueError: N005, there is no kernel.
    """

    def __init__(
        self, rows: Sequence[Traits], spec: ArchSpec, constants: Constants | None = None
    ) -> None:
        self.spec = spec
        self.constants = fitted(spec).constants if constants is None else constants
        self.columns = Columns.stack(rows)
        self._costs = costs(self.columns, spec, self.constants)
        self._full_step = step_time(self._costs, self.columns.occupancy)
        merged, self._merge = np.unique(self.columns.merged, return_inverse=True)
        self._merged = tuple(int(groups) for groups in merged)

    def times(self, m: float, n: float, k: float, products: float = 1.0) -> Floats:
        """Return the predicted time of each kernel in µs, shape [kernels]."""
        return self._totals(Lengths(m, n, k, products))

    def _totals(self, x: Lengths) -> Floats:
        total: Floats = self._parts(x)[1].total
        return total

    def _parts(self, x: Lengths) -> tuple[Geometry, Times]:
        m, n, k, products = (1.0 * extent for extent in x[:4])
        g = geometry(self.columns, self.spec, m, n, k, products, x.unique_fraction)
        last_step = step_time(self._costs, g.last)
        return g, times(self.columns, g, self._costs, self.constants, self._full_step, last_step)

    def times_of(self, problem: Extents) -> Floats:
        """Return the same for a problem; one without a sum takes as long as the shortest sum.

        Kernels that merge groups of a convolution see it as fewer and larger products.
        """
        unique_fraction = _unique_fraction(problem)
        if self._merged == (1,):
            x = Lengths(problem.m, problem.n, max(problem.k, 1), problem.products, unique_fraction)
            return self._totals(x)
        sizes = np.array([_product(problem, merged) for merged in self._merged], dtype=np.float64)
        products, rows, columns, sums = sizes[self._merge].T
        x = Lengths(rows, columns, np.maximum(sums, 1.0), products, unique_fraction)
        return self._totals(x)

    def estimate(
        self,
        index: int,
        m: int,
        n: int,
        k: int,
        products: int = 1,
        unique_fraction: tuple[float, float] = WHOLE,
    ) -> Estimate:
        """Return the prediction of kernel ``index`` with its terms.

        Of a kernel that merges groups, the extents are those of merged groups.
        """
        t, c = self.columns, self._costs
        g, p = self._parts(Lengths(m, n, k, products, unique_fraction))
        needed = needed_steps(g, self.constants)
        served = needed * (g.rounds * t.occupancy + g.partial * g.last)
        terms = {"launch": p.launch, "split_k": p.split}
        for name in ("matrix", "lds", "vector", "load", "issue"):
            terms[name] = served * getattr(c, name)
        terms["latency"] = p.steps - served * c.work
        terms |= {"prologue": p.prologues, "epilogue": p.epilogues, "tail": p.tail}
        waiting = (p.total - p.launch - p.split) - p.units
        share = p.memory**1.5 / (p.memory**1.5 + p.l2**1.5)
        terms |= {"memory": waiting * share, "l2": waiting * (1.0 - share)}
        i = index
        tiles_m, tiles_n = np.ceil(m / t.tile_m), np.ceil(n / t.tile_n)
        loaded = products * (m * tiles_n * t.bytes_a + n * tiles_m * t.bytes_b * t.held_b) * k
        rounds = g.rounds[i] + g.partial[i]
        filled = g.workgroups[i] / (self.spec.compute_units * t.occupancy[i])
        padded = products * tiles_m * tiles_n * _steps(t, k) * t.tile_m * t.tile_n * t.tile_k
        return Estimate(
            us=float(p.total[i]),
            terms={name: float(value[i]) for name, value in terms.items()},
            workgroups=int(g.workgroups[i]),
            occupancy=int(t.occupancy[i]),
            rounds=int(rounds),
            last_round=min(1.0, float(filled - (np.ceil(filled) - 1))),
            steps=int(g.steps[i]),
            flops=2.0 * products * m * n * k / float(t.merged[i]),
            padded_flops=2.0 * float(padded[i]),
            waves=int(g.workgroups[i] * t.waves[i]),
            bytes_loaded=float(loaded[i]),
            bytes_least=float(g.footprint[i]) * 1e6,
        )


def _steps(t: Columns, k: float) -> Floats:
    """Return the K steps of all workgroups of a tile: split-K shares K tiles out evenly.

    Of stream-K the shortest: a share that ends inside a tile takes a whole loop there.
    """
    tiles = np.ceil(k / t.tile_k)
    least = np.floor(tiles / t.split_k)
    longer = tiles - least * t.split_k
    steps: Floats = longer * loop_steps(t, least + 1) + (t.split_k - longer) * loop_steps(t, least)
    return steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One kernel and its predicted time."""

    key: GemmKey
    us: float


@dataclass(slots=True)
class Ranker:
    """Candidates of one GPU, ready to be ranked for any number of problems.

    ``spec`` may have another number of compute units than arch_specs' own; ``resources`` are what
    built kernels really use.

    Raises:
        CkUnsupportedError: N002, the model has no rate for them.
        CkValueError: N004, N005, the keys are for several architectures, or there is none.
    """

    keys: tuple[GemmKey, ...]
    spec: ArchSpec | None = None
    resources: Mapping[GemmKey, Resources] = field(default_factory=dict)
    model: CostModel = field(init=False)
    """The model of the distinct rows: kernels that differ in no trait are priced once."""
    _row_of: npt.NDArray[np.intp] = field(init=False)
    """The row of each key."""
    _merged: tuple[int, ...] = field(init=False)
    _chosen: dict[object, int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        if not self.keys:
            raise error("N005")
        name = self.keys[0].arch if self.spec is None else self.spec.name
        spec = self.spec or arch(name)
        for key in self.keys:
            if key.arch != name:
                raise error("N004", got=key.arch, want=name)
        traits = [traits_of(key, spec, self._used(key)) for key in self.keys]
        places = {row: place for place, row in enumerate(dict.fromkeys(traits))}
        self._row_of = np.array([places[row] for row in traits], np.intp)
        family = self.keys[0].signature.family
        self.model = CostModel(tuple(places), spec, fitted(spec, family).constants)
        self._merged = tuple(sorted({key.algorithm.groups_merged for key in self.keys} - {1}))

    def _used(self, key: GemmKey) -> Resources | None:
        # Hashing thousands of keys takes longer than the rest of their traits.
        return self.resources.get(key) if self.resources else None

    def times_of(self, problem: Extents) -> Floats:
        """Return the predicted time of each candidate in µs, shape [keys]."""
        times: Floats = self.model.times_of(problem)[self._row_of]
        return times

    def rank(self, problem: Extents) -> tuple[Ranked, ...]:
        """Return all candidates, the quickest first; equal times keep the order of the keys."""
        us = self.times_of(problem)
        order = np.argsort(us, kind="stable")
        return tuple(Ranked(key=self.keys[i], us=float(us[i])) for i in order)

    def choose(self, problem: Extents) -> GemmKey:
        """Return the quickest candidate; the answer is remembered."""
        shape: object = (
            problem.m,
            problem.n,
            problem.k,
            problem.products,
            _unique_fraction(problem),
        )
        if self._merged:
            shape = (shape, *(_product(problem, merged) for merged in self._merged))
        index = self._chosen.get(shape)
        if index is None:
            index = self._chosen[shape] = int(np.argmin(self.times_of(problem)))
        return self.keys[index]

    def estimate(self, key: GemmKey, problem: Extents) -> Estimate:
        """Return the prediction for one candidate, term by term."""
        products, m, n, k = _product(problem, key.algorithm.groups_merged)
        extents = (m, n, max(k, 1), products)
        row = int(self._row_of[self.keys.index(key)])
        return self.model.estimate(row, *extents, _unique_fraction(problem))

    def explain(self, problem: Extents) -> str:
        """Return the predicted times of the first two candidates side by side, as text."""
        best = [ranked.key for ranked in self.rank(problem)[:2]]
        count = f"{problem.products} of " if problem.products > 1 else ""
        shape = f"{count}M={problem.m} N={problem.n} K={problem.k}"
        title = f"{shape}: the quickest of {len(self.keys)} by the cost model"
        return "\n".join([title, *self.table(best, problem)])

    def table(self, keys: Sequence[GemmKey], problem: Extents) -> list[str]:
        """Return the terms of one or two candidates side by side, as lines: chosen, runner-up."""
        return _table([(key, self.estimate(key, problem)) for key in keys])


def estimate(
    key: GemmKey,
    problem: Extents,
    *,
    spec: ArchSpec | None = None,
    resources: Resources | None = None,
) -> Estimate:
    """Return the predicted time of one kernel on one problem, term by term.

    Raises:
        CkUnsupportedError: N002, the model knows no rate for the dtype.
    """
    known_resources = {} if resources is None else {key: resources}
    return Ranker(keys=(key,), spec=spec, resources=known_resources).estimate(key, problem)


def rank(keys: Sequence[GemmKey], problem: Extents) -> tuple[Ranked, ...]:
    """Return ``keys`` with their predicted times, the quickest first.

    Raises:
        CkUnsupportedError: N002, the model knows no rate for a dtype.
        CkValueError: N004, N005, the keys are for several architectures, or there is none.
    """
    return Ranker(keys=tuple(keys)).rank(problem)


def _table(columns: Sequence[tuple[GemmKey, Estimate]]) -> list[str]:
    names = ("chosen", "runner-up")[: len(columns)]
    lines = [f"  {name}: {key.label}" for name, (key, _) in zip(names, columns, strict=True)]

    def row(label: str, cells: Sequence[str]) -> str:
        return f"  {label:<12}" + "".join(f"{cell:>14}" for cell in cells)

    estimates = [e for _, e in columns]
    lines.append(row("µs", names))
    lines += [row(t, [f"{e.terms[t]:.2f}" for e in estimates]) for t in estimates[0].terms]
    lines.append(row("total", [f"{e.us:.2f}" for e in estimates]))
    lines.append(row("workgroups", [str(e.workgroups) for e in estimates]))
    lines.append(row("rounds", [f"{e.rounds} of {e.occupancy}/CU" for e in estimates]))
    lines.append(row("last round", [f"{e.last_round:.0%} full" for e in estimates]))
    lines.append(row("padding", [f"{e.padding:.0%}" for e in estimates]))
    return lines


_OF_READ = 2
"""Instructions for each read: its place, and the conversion to f32."""

_BYTES_PER_MICROSECOND = 1e6
"""Bytes per microsecond at one TB/s."""


def prologue_time(problem: Problem, key: GemmKey, functions: Functions, spec: ArchSpec) -> float:
    """Return what the functions of A and of B add to the predicted time, in µs."""
    s, tile = key.signature, key.algorithm.tile
    across = {"a": math.ceil(problem.n / tile[1]), "b": math.ceil(problem.m / tile[0])}
    elements = {"a": problem.m * problem.k, "b": problem.n * problem.k}
    time = 0.0
    for letter, reads, own in (("a", s.a, s.dtype_a), ("b", s.b, s.dtype_b)):
        if not reads:
            continue
        loads = elements[letter] * problem.products * across[letter]
        count = instructions(functions.get(f"prologue_{letter}")) + _OF_READ * len(reads)
        more = max(0, sum(map(_bytes, reads)) - own.bytes)
        time += vector_time(loads * count, spec)
        time += loads * more / (fitted(spec).constants.l2 * _BYTES_PER_MICROSECOND)
    return time


def _bytes(read: DOperand) -> int:
    """Return what a read moves for each element: rows and columns stay in the nearest cache."""
    return read.dtype.bytes if read.kind in (DKind.FULL, DKind.STRIDED) else 0
