# SPDX-License-Identifier: MIT
"""Strategies that measure, or choose by what was measured.

Importing it registers the names of all strategies that need more than a cost model.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cklang.errors import error
from cklang.fusion.functions import Functions
from cklang.selection.compiled_first import CompiledFirst
from cklang.selection.pool import AnyPool, Legal
from cklang.selection.strategy import Chosen, Heuristic
from cklang.selection.tiered import Tiered
from cklang.tune.on_device import Measure, measurement
from cklang.tune.session import database_path, query_of

if TYPE_CHECKING:
    from cklang.arch import ArchSpec
    from cklang.tune.database import Measurement

__all__ = ["Autotune", "CompiledFirst", "Tiered", "Tuned"]


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
        if not pool.family.tuning.measurable(problem):
            return Heuristic().choose(pool, problem, legal, functions)
        if functions is None:
            raise error("K010")
        shortlist = self._shortlist(pool, problem, legal)
        measure = self.measure or measurement
        costs = measure([pool.keys[p] for p in shortlist], functions, problem, pool.spec)
        best = min(range(len(shortlist)), key=lambda i: costs.values[i])
        cost = f"{costs.values[best]:.6g} {costs.unit}, the least of {len(shortlist)} measured"
        return Chosen(position=shortlist[best], reason=f"{cost} on {costs.device}")

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
