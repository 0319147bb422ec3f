# SPDX-License-Identifier: MIT
"""A strategy for emulated GPUs, where calls wait for compilers and not for kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cklang.errors import CkUnsupportedError
from cklang.fusion.functions import Functions
from cklang.keys import AnyKey
from cklang.selection.pool import AnyPool, Legal
from cklang.selection.strategy import Chosen, Heuristic
from cklang.selection.tiered import quickest


@dataclass(frozen=True, slots=True)
class CompiledFirst:
    """The quickest kernel that is compiled, among those of at most ``slack`` times the least time.

    Where none is compiled, the smallest tile of the preset that programs share: then most products
    of a program have one main loop. The heuristic's if that would be too slow, or if the cost model
    has no time. Beside that preset the ``limit`` quickest kernels are looked at.
    """

    slack: float = 2.0
    limit: int = 16
    name: str = "compiled_first"

    def choose(
        self, pool: AnyPool, problem: Any, legal: Legal, functions: Functions | None
    ) -> Chosen:
        """Return it; the reason names the heuristic's kernel.

        Raises:
            CkBuildError: B rows, there is no compiler.
        """
        from cklang.build.builder import shared_builder

        best = Heuristic().choose(pool, problem, legal, functions)
        if functions is None:
            return best
        try:
            times = np.where(legal, pool.times_of(problem), np.inf)
        except CkUnsupportedError:
            return best
        bound = self.slack * np.min(times)
        places = [at for at in quickest(pool, times, legal, self.limit) if times[at] <= bound]
        builder = shared_builder()
        compiled = (at for at in places if builder.is_compiled(pool.keys[at], functions))
        chosen = next(compiled, None)
        why = "compiled already"
        if chosen is None:
            chosen = _shared(pool, places, best.position)
            why = "no other is compiled, and programs share this one"
        if chosen == best.position:
            return best
        instead = f"{pool.keys[best.position].label}: {best.reason}"
        reason = f"{times[chosen]:.2f} µs predicted, {why}; a GPU's own choice is {instead}"
        return Chosen(position=chosen, reason=reason)


def _shared(pool: AnyPool, places: list[int], best: int) -> int:
    """Return the place of the smallest tile that programs share; ``best`` if there is none."""
    familiar = [at for at in places if at < pool.preferred < len(pool)]
    return min(familiar, key=lambda at: (_elements(pool.keys[at]), at), default=best)


def _elements(key: AnyKey) -> int:
    return math.prod(key.algorithm.tile)
