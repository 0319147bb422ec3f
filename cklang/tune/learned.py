# SPDX-License-Identifier: MIT
"""The strategy ``learned``: what a ranker learned from published measurements, where there is one.

Nobody gets it without asking for it, so a choice never depends on what is installed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from cklang.families.gemm.family import ProductCost
from cklang.families.gemm.problem import Problem
from cklang.fusion.functions import Functions
from cklang.selection.pool import AnyPool, Legal
from cklang.selection.strategy import Chosen, Heuristic
from cklang.tune.ranker import learned

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
        if (
            not isinstance(problem, Problem)
            or (ranker := learned(pool.spec, problem.signature)) is None
        ):
            other = Heuristic().choose(pool, problem, legal, functions)
            reason = f"nothing was learned of such products on {pool.spec.name}; {other.reason}"
            return Chosen(position=other.position, reason=reason)
        priced = cast(ProductCost, pool.cost).ranker
        logits = priced.of_keys(ranker.logits(priced.model, problem))
        position = int(np.argmax(np.where(legal, logits, -np.inf)))
        count = int(np.count_nonzero(legal))
        reason = f"preferred by the learned ranker of {count} legal candidates of {len(pool)}"
        return Chosen(position=position, reason=reason)
