# SPDX-License-Identifier: MIT
"""The default of a call beside the quickest of its kernels by the clock, in drawn cases.

For gradients of attention, grouped products, rows and products, so many calls are drawn with a
seed. Each is predicted (``docs/clock.md``) with the first few kernels of different kinds by the
cost model, in the place of the one that it prefers: the share is the least time over that of the
default. Where the cost model states how far from the best its choice can be, *within* says how
often that is so, of the kernels that are timed, and *spread* is the least with which its bounds
hold in nine of ten cases (``cklang.selection.regret``); ``--store`` keeps it with the constants.
Prints Markdown:

    python benchmarks/clock_choice.py [--family rows] [--gpu gfx942] [--cases 24] [--all]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from attention_choice import causal, dense
from conv_choice import CONSTANTS
from kernelbench_ops import pointwise, row_sum, scaled
from rows_choice import added, arguments, softmax, transposed

import cklang as ck
from cklang.arch import arch
from cklang.errors import CkError
from cklang.families.cost_constants import fitted
from cklang.selection.regret import CASES, regret_bound
from cklang.selection.strategy import Chosen, Heuristic
from cklang.tune.strategies import shortlist

M, N, K = ck.dims("M N K")


@ck.op
def product(x: ck.bf16[M, K], w: ck.bf16[N, K]) -> ck.bf16[M, N]:
    """A product."""
    return x @ w.T


@dataclass(eq=False)
class Nth:
    """Chooses the kernel at a place of the cost model's order, each of another kind.

    With a family, other families' kernels are the default ones.
    """

    place: int
    family: str
    name: str = "nth"
    bounds: list[float | None] = field(default_factory=list)
    """Of the default choices, as the model states them."""
    rivals: list[tuple[Any, int]] = field(default_factory=list)
    """What such a bound depends on, but for the spread."""
    kernels: list[str] = field(default_factory=list)

    def choose(self, pool: Any, problem: Any, legal: Any, functions: Any) -> Chosen:
        """Return it; the last one if there are fewer."""
        default = Heuristic().choose(pool, problem, legal, functions)
        if pool.family.name != self.family:
            return default
        position = shortlist(pool, problem, legal, self.place + 1, pool.kinds)[-1]
        times = np.where(legal, pool.times_of(problem) * pool.handicap, np.inf)
        self.bounds.append(default.regret)
        self.rivals.append(pool.rivals(times, default.position))
        self.kernels.append(pool.keys[position].label)
        return Chosen(position=position, reason=f"number {self.place} by the cost model")


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is timed."""

    words: str
    run: Callable[..., Any]
    args: Sequence[Any]


def _zeros(shape: Sequence[int]) -> Any:
    return np.zeros(shape, ml_dtypes.bfloat16)


def _gradients(random: np.random.RandomState) -> Call:
    op = (dense, causal)[random.randint(2)]
    heads, width = 2 ** random.randint(2, 6), (64, 128)[random.randint(2)]
    groups, batch = heads // 2 ** random.randint(0, 3), 2 ** random.randint(0, 3)
    length = 2 ** random.randint(9, 13)
    q, k = _zeros((batch, heads, length, width)), _zeros((batch, groups, length, width))
    words = f"{op.program.name}, {batch} x {heads}/{groups} x {length} x {width}"
    return Call(words, lambda *args, **how: ck.attention_grad(op, *args, grad=q, **how), (q, k, k))


def _grouped(random: np.random.RandomState) -> Call:
    count, n, k = 2 ** random.randint(1, 6), 2 ** random.randint(9, 13), 2 ** random.randint(9, 13)
    most = 2 ** random.randint(4, 11)
    rows = [int(m) for m in random.randint(1, most + 1, count)]
    w = _zeros((n, k))
    calls = [(_zeros((m, k)), w.copy()) for m in rows]
    words = f"{count} of up to {max(rows)} x {n} x {k}"
    return Call(words, lambda *args, **how: product.grouped(list(args), **how), calls)


def _rows(random: np.random.RandomState) -> Call:
    ops = (added, transposed, softmax, row_sum, pointwise(scaled))
    op = ops[random.randint(len(ops))]
    rows, columns = (int(2 ** random.uniform(5, 13)) * 8 for _ in range(2))
    return Call(f"{op.program.name}, {rows} x {columns}", op, arguments(op, rows, columns))


def _products(random: np.random.RandomState) -> Call:
    m, n, k = (int(2 ** random.uniform(low, high)) * 8 for low, high in ((0, 9), (6, 10), (6, 10)))
    return Call(f"{m} x {n} x {k}", product, (_zeros((m, k)), _zeros((n, k))))


DRAWN = {
    "gradients": (_gradients, "attention_backward"),
    "grouped": (_grouped, "gemm"),
    "rows": (_rows, "rowwise"),
    "products": (_products, "gemm"),
}


def timed(call: Call, family: str, gpu: str, count: int) -> Iterator[tuple[float, Nth]]:
    """Yield the µs of a call with each of its first kernels, the default one first."""
    timed_before = set()
    for place in range(count):
        strategy = Nth(place, family)
        with ck.using(strategy=strategy, preset="catalogue"):
            try:
                us = ck.predict(call.run, *call.args, device=f"emu:{gpu}").us
            except CkError as refusal:
                print(f"  {call.words}: {refusal}".splitlines()[0])
                continue
        kernels = tuple(strategy.kernels)
        if kernels not in timed_before:
            timed_before.add(kernels)
            yield us, strategy


@dataclass(frozen=True, slots=True)
class Outcome:
    """The default of a call beside the quickest."""

    own: float
    least: float
    bound: float | None
    rivals: tuple[Any, int]

    @property
    def share(self) -> float:
        """The part of the quickest one's speed."""
        return self.least / self.own

    def within(self, bound: float) -> bool:
        """Tell whether a bound holds."""
        return self.own <= (1.0 + bound) * self.least


def outcome(call: Call, family: str, gpu: str, asked: argparse.Namespace) -> Outcome | None:
    """Time a call; None if no kernel of the family is in it."""
    rows = list(timed(call, family, gpu, asked.first))
    if not rows or not rows[0][1].kernels:
        return None
    (own, strategy), (least, best) = rows[0], min(rows, key=lambda row: row[0])
    result = Outcome(own, least, strategy.bounds[0], strategy.rivals[0])
    if asked.all:
        stated = "" if result.bound is None else f", bound {result.bound:.0%}"
        print(f"  {call.words}: {own:.1f} µs, {result.share:.2f}{stated}", flush=True)
        print(f"    {strategy.kernels[0]}\n    {best.kernels[0]}", flush=True)
    return result


def least_spread(outcomes: Sequence[Outcome]) -> float:
    """Return the least spread with which bounds hold in nine of ten cases."""

    def kept(spread: float) -> float:
        return float(np.mean([o.within(regret_bound(*o.rivals, spread)) for o in outcomes]))

    return next((spread for spread in np.arange(0.01, 0.5, 0.005) if kept(spread) >= CASES), 0.5)


def store(gpu: str, spread: float, cases: int) -> None:
    """Keep the spread with the constants of products."""
    own = fitted(arch(gpu))
    error = {**own.error, "spread by clock": round(spread, 3)}
    words = f"benchmarks/clock_choice.py, {cases} products in bf16"
    provenance = {**own.provenance, "by clock": words}
    path = CONSTANTS / f"{own.gpu}_{own.compute_units}.json"
    path.write_text(
        json.dumps({**own.to_json(), "error": error, "provenance": provenance}, indent=2) + "\n"
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--family", choices=list(DRAWN), help="one kind; all if left out")
    parser.add_argument("--gpu", default="gfx942,gfx950")
    parser.add_argument("--cases", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=5, help="how many kernels are timed")
    parser.add_argument("--all", action="store_true", help="print each case")
    parser.add_argument("--store", action="store_true", help="keep the spread of products")
    asked = parser.parse_args()
    heads = ("cases", "mean", "median", "10th percentile", "least", "within", "spread")
    print(f"| calls | GPU | {' | '.join(heads)} |")
    print(f"|---|---|{'---:|' * len(heads)}", flush=True)
    for name in [asked.family] if asked.family else DRAWN:
        draw, family = DRAWN[name]
        for gpu in asked.gpu.split(","):
            random = np.random.RandomState(asked.seed)
            calls = [draw(random) for _ in range(asked.cases)]
            known = [o for o in (outcome(call, family, gpu, asked) for call in calls) if o]
            shares = [o.share for o in known]
            numbers = (np.mean(shares), np.median(shares), np.percentile(shares, 10), min(shares))
            cells = " | ".join(f"{number:.2f}" for number in numbers)
            stated = [o for o in known if o.bound is not None]
            within = [o.within(o.bound) for o in stated if o.bound is not None]
            kept = f"{np.mean(within):.2f} | {least_spread(stated):.3f}" if within else " | "
            print(f"| {name} | {gpu} | {len(known)} | {cells} | {kept} |", flush=True)
            if asked.store and name == "products":
                store(gpu, least_spread(stated), len(stated))


if __name__ == "__main__":
    main()
