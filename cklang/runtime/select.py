# SPDX-License-Identifier: MIT
"""Take the first algorithm to which no rule objects, and keep why not the ones before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cklang.arch import ArchSpec
from cklang.errors import error
from cklang.keys import Algorithm, KernelKey
from cklang.runtime.problem import Problem
from cklang.runtime.rules import Rejection, objections

__all__ = ["Selection", "select"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The kernel chosen for a problem."""

    key: KernelKey
    position: int
    """Its place in the order of candidates, from 0."""
    candidates: int
    rejections: tuple[Rejection, ...]
    """One for each candidate before it: the first rule that objected."""
    asked: bool = False
    """Whether the user named the algorithm."""


def select(
    problem: Problem,
    spec: ArchSpec,
    candidates: Sequence[Algorithm],
    *,
    asked: bool = False,
) -> Selection:
    """Return the first legal candidate.

    Raises:
        CkUnsupportedError: K101, rules reject every candidate; K102, there is no candidate.
    """
    signature = problem.signature
    if not candidates:
        raise error("K102", signature=_words(problem), arch=spec.name)
    rejections: list[Rejection] = []
    for position, algorithm in enumerate(candidates):
        found = next(objections(algorithm, signature, spec, problem), None)
        if found is None:
            return Selection(
                key=KernelKey(signature, algorithm, spec.name),
                position=position,
                candidates=len(candidates),
                rejections=tuple(rejections),
                asked=asked,
            )
        rejections.append(found)
    reasons = dict.fromkeys(str(rejection) for rejection in rejections)
    raise error(
        "K101",
        notes=list(reasons)[:8],
        problem=problem,
        arch=spec.name,
        what="the algorithm you named" if asked else f"any of {len(candidates)} algorithms",
    )


def _words(problem: Problem) -> str:
    s = problem.signature
    d = ", ".join(f"{x.dtype} {x.kind.value}" for x in s.d) or "none"
    return f"{s.dtype_a} by {s.dtype_b} to {s.dtype_e}, layouts {s.layouts}, epilogue operands {d}"
