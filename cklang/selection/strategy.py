# SPDX-License-Identifier: MIT
"""How one of several legal kernels is chosen. All are deterministic and total.

=============  ====================================================================================
first_fit      the first in the pool's order: priority, then the order of declaration
heuristic      the quickest by the cost model, or the first legal one that a function names
autotune       the quickest of a few, timed on the device of the call
learned        what a ranker prefers that learned from published winners, else the heuristic's
tuned          the best that ``ck.autotune`` has measured for this very problem, else the heuristic
=============  ====================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from cklang.codec import unknown
from cklang.errors import CkUnsupportedError, error
from cklang.fusion.functions import Functions
from cklang.keys import AnyKey
from cklang.selection.pool import AnyPool, Legal

if TYPE_CHECKING:
    from cklang.arch import ArchSpec
    from cklang.tune.database import Measurement
    from cklang.tune.on_device import Measure

__all__ = [
    "STRATEGIES",
    "Autotune",
    "Chosen",
    "Direction",
    "FirstFit",
    "Heuristic",
    "Strategy",
    "Tuned",
    "strategy_of",
]

Direction = Callable[[Any], Sequence[AnyKey]]
"""A heuristic: from a problem to keys, best first; those that are not in the pool do not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A place in a pool, and why it."""

    position: int
    reason: str


@runtime_checkable
class Strategy(Protocol):
    """Chooses among the legal kernels of a pool, of which there is at least one."""

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
    pool's order. Where the model has no rate for the dtypes, or ``rank`` names no legal kernel, the
    first legal one is taken, and the reason says so.
    """

    rank: Direction | None = None
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
        times = np.where(legal, predicted, np.inf)
        position = int(np.argmin(times))
        count = int(np.count_nonzero(legal))
        least = f"{times[position]:.2f} µs predicted"
        reason = f"{least}, the least of {count} legal candidates of {len(pool)}"
        if pool.built:
            reason += f" ({len(pool.built)} with the registers and LDS of their code objects)"
        if pool.carried_from:
            reason += f" (constants carried over from {pool.carried_from})"
        return Chosen(position=position, reason=reason)

    def _named(self, pool: AnyPool, problem: Any, legal: Legal, rank: Direction) -> Chosen:
        for place, key in enumerate(rank(problem)):
            position = pool.position(key)
            if position is not None and legal[position]:
                reason = f"number {place + 1} of the heuristic, the first that is legal"
                return Chosen(position=position, reason=reason)
        first = FirstFit().choose(pool, problem, legal, None)
        why = f"the heuristic names no legal candidate; {first.reason}"
        return Chosen(position=first.position, reason=why)


@dataclass(frozen=True, slots=True)
class Autotune:
    """The quickest of the ``limit`` kernels that the heuristic likes best, timed on the device.

    A kernel of gradients is timed with the sum of its parts of dq.

    On an emulated device executed instructions are compared, for its times say nothing about a
    GPU; the reason says so. ``measure`` does the timing; without it the device of the call's GPU.
    """

    limit: int = 8
    measure: Measure | None = None
    name: str = "autotune"

    def choose(
        self, pool: AnyPool, problem: Any, legal: Legal, functions: Functions | None
    ) -> Chosen:
        """Build the kernels, time them, and return the quickest.

        Raises:
            CkValueError: K010, there is no epilogue to build them with.
        """
        from cklang.tune.on_device import measurement

        if not pool.family.measurable(problem):
            return Heuristic().choose(pool, problem, legal, functions)
        if functions is None:
            raise error("K010")
        shortlist = self._shortlist(pool, problem, legal)
        measure = self.measure or measurement
        costs = measure([pool.keys[p] for p in shortlist], functions, problem, pool.spec)
        best = min(range(len(shortlist)), key=lambda i: costs.values[i])
        found = f"{costs.values[best]:.6g} {costs.unit}, the least of {len(shortlist)} measured"
        return Chosen(position=shortlist[best], reason=f"{found} on {costs.device}")

    def _shortlist(self, pool: AnyPool, problem: Any, legal: Legal) -> list[int]:
        rest = legal.copy()
        shortlist: list[int] = []
        while len(shortlist) < self.limit and rest.any():
            position = Heuristic().choose(pool, problem, rest, None).position
            shortlist.append(position)
            rest[position] = False
        return shortlist


@dataclass(frozen=True, slots=True, eq=False)
class Tuned:
    """The best right kernel that a tuning database knows for a problem; else the heuristic's.

    Measurements count for their problem, GPU, toolchain and kind of device only. The database is
    read when a problem is first met: a new object, or ``strategy="tuned"`` again, reads it anew.
    """

    database: Path | str | None = None
    """The file; that of ``ck.autotune`` if left out."""
    name: str = "tuned"

    def choose(
        self, pool: AnyPool, problem: Any, legal: Legal, functions: Functions | None
    ) -> Chosen:
        """Return it.

        Raises:
            CkValueError: N006, K003, the database cannot be used.
        """
        known = self._measurements(problem, pool.spec)
        for measurement in known:
            position = pool.position(measurement.key)
            if measurement.rank is not None and position is not None and legal[position]:
                cost = f"{measurement.cost:.6g} {measurement.unit}"
                reason = f"{cost}, the best of {len(known)} measured kernels in the database"
                return Chosen(position=position, reason=reason)
        other = Heuristic().choose(pool, problem, legal, functions)
        reason = f"nothing of it is in the tuning database; {other.reason}"
        return Chosen(position=other.position, reason=reason)

    def _measurements(self, problem: Any, spec: ArchSpec) -> tuple[Measurement, ...]:
        from cklang.tune.database import Database
        from cklang.tune.session import database_path, question_of

        path = Path(self.database) if self.database is not None else database_path()
        if not path.exists():
            return ()
        with Database(path) as database:
            return database.measurements(question_of(problem, spec))


def _learned() -> Strategy:
    from cklang.tune.learned import Learned

    return Learned()


STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "first_fit": FirstFit,
    "heuristic": Heuristic,
    "autotune": Autotune,
    "tuned": Tuned,
    "learned": _learned,
}
"""The strategies that have a name."""


def strategy_of(given: str | Strategy | Direction) -> Strategy:
    """Return the strategy called ``given``, or itself, or a heuristic that asks the function.

    Raises:
        CkValueError: K001, there is no such strategy.
    """
    if isinstance(given, str):
        if given not in STRATEGIES:
            raise unknown("strategy", given, list(STRATEGIES))
        return STRATEGIES[given]()
    if isinstance(given, Strategy):
        return given
    return Heuristic(given)
