# SPDX-License-Identifier: MIT
"""What ``op.using`` asks of the selection of kernels, checked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cklang.device.arrays import plain
from cklang.dims import require_integer
from cklang.errors import error
from cklang.families import FAMILIES
from cklang.selection.registry import Registry
from cklang.selection.strategy import RankFunction, Strategy, strategy_of

if TYPE_CHECKING:
    from cklang.selection.request import Request


def request_of(
    request: Request,
    algorithm: Any,
    registry: Registry | None,
    strategy: str | Strategy | RankFunction | None,
    splits: int | None,
) -> Request:
    """Return a request with choices of its own; what is None stays as it is."""
    _expect_algorithm(algorithm)
    if registry is not None and not isinstance(registry, Registry):
        raise error("K025", got=registry)
    changed = request if algorithm is None else request.with_algorithm(algorithm)
    return replace(
        changed,
        registry=request.registry if registry is None else registry,
        strategy=request.strategy if strategy is None else strategy_of(strategy),
        splits=request.splits if splits is None else _splits(splits),
    )


def _expect_algorithm(algorithm: object) -> None:
    classes = {f.algorithm: f.algorithm_text for f in FAMILIES.values() if f.algorithm is not None}
    if algorithm is not None and not isinstance(algorithm, tuple(classes)):
        raise error("K022", want=" or ".join(classes.values()), got=algorithm)


def _splits(value: object) -> int:
    return require_integer("splits", plain(value))
