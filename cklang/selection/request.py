# SPDX-License-Identifier: MIT
"""What somebody asked of a selection, in a call or of an op."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cklang.selection.registry import Registry
    from cklang.selection.strategy import Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What somebody asked of a selection; None: what the context says."""

    algorithm: Any = None
    others: tuple[Any, ...] = ()
    """Further algorithms, of other families."""
    registry: Registry | None = None
    strategy: Strategy | None = None
    splits: int | None = None
    """For an attention: among how many workgroups the keys of a tile of queries are shared."""

    @property
    def algorithms(self) -> tuple[Any, ...]:
        """All that were named."""
        return () if self.algorithm is None else (self.algorithm, *self.others)

    def with_algorithm(self, algorithm: Any) -> Request:
        """Return the request with one more, in the place of another one of the same class."""
        others = tuple(named for named in self.algorithms if type(named) is not type(algorithm))
        return replace(self, algorithm=algorithm, others=others)

    def only(self, of: type[Any] | None) -> Request:
        """Return the request with the algorithm of a class, or none, and no others."""
        mine = (
            algorithm
            for algorithm in self.algorithms
            if of is not None and isinstance(algorithm, of)
        )
        return replace(self, algorithm=next(mine, None), others=())
