# SPDX-License-Identifier: MIT
"""Strategies that measure, or choose by what was measured.

Importing it registers the names of all strategies that need more than a cost model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from cklang.emulator.clock.constants import constants_of
from cklang.errors import error
from cklang.fusion.functions import Functions
from cklang.selection.compiled_first import CompiledFirst
from cklang.selection.pool import AnyPool, Legal
from cklang.selection.strategy import Chosen, Heuristic
from cklang.selection.tiered import Tiered
from cklang.tune.by_clock import CLOCKED, clocked_device
from cklang.tune.on_device import Measure, measured_on, measurement
from cklang.tune.session import database_path, query_of

if TYPE_CHECKING:
    from cklang.arch import ArchSpec
    from cklang.keys import AnyKey
    from cklang.tune.database import Measurement

__all__ = ["Autotune", "Clock", "CompiledFirst", "Tiered", "Tuned"]


@dataclass(frozen=True, slots=True)
class Autotune:
    """The quickest of the ``limit`` kernels that the heuristic likes best, timed on the device.

    A kernel of gradients is timed with the sum of its parts of dq.

    On an emulated device times by the clock are compared, or executed instructions where it has no
    constants; the reason says so. ``measure`` does the timing; without it the device of the call's
    GPU.
    """

    limit: int = 8
    measure: Measure | None = None
    name: str = "autotune"
    launches: ClassVar[bool] = True

    def choose(
        self, pool: AnyPool, problem: Any, legal: Legal, functions: Functions | None
    ) -> Chosen:
        """Build the kernels, time them, and return the quickest.

        Raises:
            CkValueError: K010, there is no epilogue to build them with.
        """
        if not pool.family.tuning.measurable(problem):
            return Heuristic().choose(pool, problem, legal, functions)
        if functions is None:
            raise error("K010")
        favourites = shortlist(pool, problem, legal, self.limit, np.arange(len(pool)))
        measure = self.measure or measurement
        costs = measure([pool.keys[p] for p in favourites], functions, problem, pool.spec)
        best = min(range(len(favourites)), key=lambda i: costs.values[i])
        cost = f"{costs.values[best]:.6g} {costs.unit}, the least of {len(favourites)} measured"
        return Chosen(position=favourites[best], reason=f"{cost} on {costs.device}")


def shortlist(
    pool: AnyPool, problem: Any, legal: Legal, limit: int, kinds: npt.NDArray[np.intp]
) -> list[int]:
    """Return the places of the heuristic's favourites, each of another kind, in order."""
    rest = legal.copy()
    favourites: list[int] = []
    while len(favourites) < limit and rest.any():
        position = Heuristic().choose(pool, problem, rest, None).position
        favourites.append(position)
        rest &= kinds != kinds[position]
    return favourites


@dataclass(frozen=True, slots=True)
class Clock:
    """The quickest of a few kernels by the emulator's clock, where the cost model is not sure.

    The heuristic's choice is taken if the model says that it is within ``enough`` of the best in 9
    of 10 cases. Else the first ``limit`` kernels of different tiles are built, a few of their
    workgroups run on an emulated GPU, and the clock says what each would take with cold caches
    (``docs/clock.md``). That is deterministic. Times are kept in the tuning database and not taken
    again; results are not checked, so ``tuned`` does not see them.
    """

    limit: int = 4
    enough: float = 0.05
    database: Path | str | None = None
    """The file; that of ``ck.autotune`` if left out."""
    name: str = "clock"
    launches: ClassVar[bool] = True

    def choose(
        self, pool: AnyPool, problem: Any, legal: Legal, functions: Functions | None
    ) -> Chosen:
        """Return it.

        Raises:
            CkValueError: K010, there is no epilogue to build kernels with; N006, K003, the
                database cannot be used; A131, launches are being recorded.
            CkUnsupportedError: K050, the clock has no constants for the GPU.
        """
        first = Heuristic().choose(pool, problem, legal, functions)
        sure = first.regret is not None and first.regret <= self.enough
        if sure or not pool.family.tuning.measurable(problem):
            return first
        if functions is None:
            raise error("K010")
        places = shortlist(pool, problem, legal, self.limit, pool.kinds)
        times = self._times([pool.keys[place] for place in places], functions, problem, pool.spec)
        best = min(range(len(places)), key=lambda at: times[at])
        quickest = f"{times[best]:.2f} µs by the clock, the least of {len(places)} kernels"
        reason = f"{quickest}; by the cost model {first.reason}"
        return Chosen(position=places[best], reason=reason)

    def _times(
        self, keys: list[AnyKey], functions: Functions, problem: Any, spec: ArchSpec
    ) -> list[float]:
        """Return the µs of kernels: those in the database, and those that are timed now."""
        from cklang.tune.database import Database, Measurement, Status, now

        constants_of(spec.name)  # before kernels are built
        device = f"{clocked_device(spec)}, cold caches, not checked"
        query = replace(query_of(problem, spec), device=device)
        with Database(database_path() if self.database is None else self.database) as database:
            rows = database.measurements(query)
            known = {row.key: row.cost for row in rows if row.cost is not None}
            missing = [key for key in keys if key not in known]
            if missing:
                gpu = f"emu:{spec.name}"
                costs = measured_on(gpu, missing, functions, problem, caches="cold")
                for key, us in zip(missing, costs.values, strict=True):
                    known[key] = us
                    row = Measurement(
                        key=key, status=Status.RIGHT, cost=us, unit=CLOCKED, measured_at=now()
                    )
                    database.record(query, row)
        return [known[key] for key in keys]


@dataclass(frozen=True, slots=True, eq=False)
class Tuned:
    """The best correct kernel of a problem in a tuning database; else the heuristic's choice.

    Measurements count for their problem, GPU, toolchain and kind of device only. The database is
    read when a problem is first met: a new object, or ``strategy="tuned"`` again, reads it anew.

    Example:
        >>> problem = ck.dispatch.problem(256, 512, 64)
        >>> tuned = ck.dispatch.Tuned("tuning.sqlite")
        >>> ck.dispatch.select(problem, arch="gfx942", strategy=tuned).reason
        'nothing of it is in the tuning database; ...'
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
        for row in known:
            position = pool.position(row.key)
            if row.rank is not None and position is not None and legal[position]:
                cost = f"{row.cost:.6g} {row.unit}"
                reason = f"{cost}, the best of {len(known)} measured kernels in the database"
                return Chosen(position=position, reason=reason)
        other = Heuristic().choose(pool, problem, legal, functions)
        reason = f"nothing of it is in the tuning database; {other.reason}"
        return Chosen(position=other.position, reason=reason)

    def _measurements(self, problem: Any, spec: ArchSpec) -> tuple[Measurement, ...]:
        from cklang.tune.database import Database

        path = Path(self.database) if self.database is not None else database_path()
        if not path.exists():
            return ()
        with Database(path) as database:
            return database.measurements(query_of(problem, spec))
