# SPDX-License-Identifier: MIT
"""The strategy ``learned``: what a ranker learned from published measurements, where there is one.

Nobody gets it without asking for it, so a choice never depends on what is installed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cklang.families import family_of
from cklang.fusion.functions import Functions
from cklang.selection.pool import AnyPool, Legal
from cklang.selection.strategy import Chosen, Heuristic

__all__ = ["Learned"]


@dataclass(frozen=True, slots=True)
class Learned:
    """The kernel that a learned ranker prefers; the heuristic's where nothing was learned."""

    name: str = "learned"

    def choose(
        self, pool: AnyPool, problem: Any, legal: Legal, functions: Functions | None
    ) -> Chosen:
        """Return it.

        Raises:
            CkUnsupportedError: N012, LightGBM is not installed.
        """
        logits = family_of(problem.signature).preference(pool.cost, problem)
        if logits is None:
            other = Heuristic().choose(pool, problem, legal, functions)
            reason = f"nothing was learned of such products on {pool.spec.name}; {other.reason}"
            return Chosen(position=other.position, reason=reason)
        position = int(np.argmax(np.where(legal, logits, -np.inf)))
        count = int(np.count_nonzero(legal))
        reason = f"preferred by the learned ranker of {count} legal candidates of {len(pool)}"
        return Chosen(position=position, reason=reason)
