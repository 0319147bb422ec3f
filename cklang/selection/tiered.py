# SPDX-License-Identifier: MIT
"""A strategy that does not wait for a compiler while another kernel is there."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cklang.errors import CkUnsupportedError
from cklang.fusion.functions import Functions
from cklang.selection.pool import AnyPool, Legal, Times
from cklang.selection.strategy import Chosen, Heuristic

_NEVER_BUILT = "; no other kernel is compiled either"


@dataclass(frozen=True, slots=True)
class Tiered:
    """The heuristic's kernel if it is compiled, else the best one that is.

    The heuristic's is then built in the background, and calls take it when it is there. Results
    may differ in the last bit between the two. Among the ``limit`` quickest kernels by the cost
    model, and the preferred ones of the pool, one counts as compiled if its stencil is: its
    functions take a fraction of a second.
    """

    limit: int = 16
    name: str = "tiered"

    def choose(
        self, pool: AnyPool, problem: Any, legal: Legal, functions: Functions | None
    ) -> Chosen:
        """Return the kernel for now, and the better one if there is one.

        Raises:
            CkBuildError: B rows, there is no compiler.
        """
        from cklang.build.builder import shared_builder

        best = Heuristic().choose(pool, problem, legal, functions)
        if functions is None:
            return best
        builder = shared_builder()
        if builder.is_compiled(pool.keys[best.position], functions):
            return best
        for position in self._others(pool, problem, legal):
            if builder.is_compiled(pool.keys[position], functions):
                reason = f"compiled already, while {pool.keys[best.position].label} is being built"
                return Chosen(
                    position=position, reason=f"{reason} ({best.reason})", awaited=best.position
                )
        return Chosen(position=best.position, reason=f"{best.reason}{_NEVER_BUILT}")

    def _others(self, pool: AnyPool, problem: Any, legal: Legal) -> Iterator[int]:
        """Yield the places to look at, the quickest kernels first."""
        try:
            times = np.where(legal, pool.times_of(problem), np.inf)
        except CkUnsupportedError:
            times = np.where(legal, 0.0, np.inf)
        yield from quickest(pool, times, legal, self.limit)


def quickest(pool: AnyPool, times: Times, legal: Legal, limit: int) -> list[int]:
    """Return the places of the ``limit`` quickest legal kernels, then of the preferred ones."""
    order = [int(place) for place in np.argsort(times, kind="stable") if legal[place]]
    return [*order[:limit], *(place for place in order[limit:] if place < pool.preferred)]
