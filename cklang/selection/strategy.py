# SPDX-License-Identifier: MIT
"""How one of several legal kernels is chosen. All are deterministic and total.

==============  ===================================================================================
first_fit       the first in the pool's order: priority, then the order of declaration
heuristic       the quickest by the cost model, or the first legal one that a function names
autotune        the quickest of a few, timed on the device of the call
clock           the heuristic's, or the quickest of a few by the clock where that is not sure
tiered          the heuristic's if it is compiled, else the best one that is
compiled_first  the quickest that is compiled, if it is not much slower than the heuristic's
tuned           the best that ``ck.autotune`` has measured for this problem, else the heuristic's
==============  ===================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from cklang.codec import unknown
from cklang.errors import CkUnsupportedError
from cklang.keys import AnyKey

if TYPE_CHECKING:
    from cklang.fusion.functions import Functions
    from cklang.selection.pool import AnyPool, Legal, Times

NEAR = 0.03
"""Part of a predicted time that the cost model does not tell apart: about its median error."""

RankFunction = Callable[[Any], Sequence[AnyKey]]
"""A heuristic: from a problem to keys, best first; those that are not in the pool do not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A place in a pool, and why it."""

    position: int
    reason: str
    regret: float | None = None
    """By which part of the best time it is slower, at most, in 9 of 10 cases, if that is known."""
    awaited: int | None = None
    """The place of a better one that is to be built in the background."""


@runtime_checkable
class Strategy(Protocol):
    """Chooses among the legal kernels of a pool; there is at least one."""

    # A strategy that launches kernels says so: ``launches = True``. Then no call that is recorded
    # may be the one in which it chooses.

    @property
    def name(self) -> str:
        """What people call it."""

    def choose(
        self, pool: AnyPool, problem: Any, legal: Legal, functions: Functions | None
    ) -> Chosen:
        """Return the kernel for ``problem``; ``functions`` are what building one would need."""


@dataclass(frozen=True, slots=True)
class FirstFit:
    """The first legal kernel in the pool's order."""

    name: str = "first_fit"

    def choose(
        self, pool: AnyPool, problem: Any, legal: Legal, functions: Functions | None
    ) -> Chosen:
        """Return it."""
        position = int(np.argmax(legal))
        place = f"candidate {position + 1} of {len(pool)} in fixed order"
        return Chosen(position=position, reason=f"{place}, the first to which no rule objects")


@dataclass(frozen=True, slots=True)
class Heuristic:
    """The best legal kernel by a ranking of the problem.

    ``rank`` gives keys, best first; without it the cost model predicts times. Equal times keep the
    pool's order. A preferred kernel of the pool is taken if it is within :data:`NEAR` of the
    quickest: programs then share few kernels. Where the model has no rate for the dtypes, or
    ``rank`` names no legal kernel, the first legal one is taken, and the reason says so.
    """

    rank: RankFunction | None = None
    name: str = "heuristic"

    def choose(
        self, pool: AnyPool, problem: Any, legal: Legal, functions: Functions | None
    ) -> Chosen:
        """Return it."""
        if self.rank is not None:
            return self._named(pool, problem, legal, self.rank)
        try:
            predicted = pool.times_of(problem)
        except CkUnsupportedError as refusal:
            first = FirstFit().choose(pool, problem, legal, functions)
            why = f"{first.reason} (no prediction: {refusal.message})"
            return Chosen(position=first.position, reason=why)
        times = np.where(legal, predicted * pool.handicap, np.inf)
        quickest = int(np.argmin(times))
        position = _preferred(times, quickest, pool.preferred)
        count = int(np.count_nonzero(legal))
        near = "" if position == quickest else f"within {NEAR:.0%} of "
        least = f"{predicted[position]:.2f} µs predicted, {near}the least"
        reason = f"{least} of {count} legal candidates of {len(pool)}"
        bound = pool.regret(problem, times, position)
        if bound is not None:
            reason += f", at most {math.ceil(100 * bound)} % from the best in 9 of 10 cases"
        if pool.built:
            reason += f" ({len(pool.built)} with the registers and LDS of their code objects)"
        if pool.carried_from:
            reason += f" (constants carried over from {pool.carried_from})"
        return Chosen(position=position, reason=reason, regret=bound)

    def _named(self, pool: AnyPool, problem: Any, legal: Legal, rank: RankFunction) -> Chosen:
        for place, key in enumerate(rank(problem)):
            position = pool.position(key)
            if position is not None and legal[position]:
                reason = f"number {place + 1} of the heuristic, the first that is legal"
                return Chosen(position=position, reason=reason)
        first = FirstFit().choose(pool, problem, legal, None)
        why = f"the heuristic names no legal candidate; {first.reason}"
        return Chosen(position=first.position, reason=why)


def _preferred(times: Times, quickest: int, preferred: int) -> int:
    """Return the quickest of the preferred kernels if it is near the quickest of all."""
    if quickest < preferred or preferred == 0:
        return quickest
    first = int(np.argmin(times[:preferred]))
    return first if times[first] <= (1.0 + NEAR) * times[quickest] else quickest


STRATEGIES: dict[str, Callable[[], Strategy]] = {"first_fit": FirstFit, "heuristic": Heuristic}
"""The strategies that have a name; the package adds those of :mod:`cklang.tune.strategies`, which
measure or look at what is built."""


def strategy_of(choice: str | Strategy | RankFunction) -> Strategy:
    """Return the strategy named ``choice``, a strategy as it is, or a heuristic for a function."""
    if isinstance(choice, str):
        if choice not in STRATEGIES:
            raise unknown("strategy", choice, list(STRATEGIES))
        return STRATEGIES[choice]()
    if isinstance(choice, Strategy):
        return choice
    return Heuristic(choice)
