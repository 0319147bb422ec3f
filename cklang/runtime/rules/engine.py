# SPDX-License-Identifier: MIT
"""What a rule is. Every rule of cklang is one function in one of the tables made here.

A rule looks at one fact and returns what it saw against its bound, or None if it has no objection.
The same rows filter candidates, prune the enumeration, explain a choice, word a refusal, and tell
which values would be legal. Rules of an algorithm ask its signature and GPU; rules of a problem
ask extents, strides and addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from cklang.arch import ArchSpec
from cklang.keys import Algorithm, Signature

__all__ = [
    "ALGORITHM_RULES",
    "CONV_RULES",
    "PROBLEM_RULES",
    "AlgorithmRule",
    "Objection",
    "ProblemRule",
    "algorithm_rule",
    "multiple",
    "problem_rule",
    "rules_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """What a rule saw and what it allows."""

    what: str
    value: str
    bound: str


AlgorithmCheck = Callable[[Algorithm, Signature, ArchSpec], Objection | None]
# The problem is one of the table's: of a product or of a convolution.
ProblemCheck = Callable[[Any, Algorithm, ArchSpec], Objection | None]
Footprint = Callable[[Algorithm], Hashable]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgorithmRule:
    """A rule about (algorithm, signature, GPU)."""

    id: str
    sentence: str
    reads: tuple[str, ...]
    """The fields of the algorithm that it looks at, so that it can be asked before others."""
    check: AlgorithmCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemRule:
    """A rule about (problem, algorithm, GPU)."""

    id: str
    sentence: str
    reads: tuple[str, ...]
    """The fields of the algorithm that it looks at."""
    check: ProblemCheck
    footprint: Footprint
    """What of an algorithm decides: equal footprints get equal answers."""


ALGORITHM_RULES: list[AlgorithmRule] = []
"""In the order in which they are asked."""
PROBLEM_RULES: list[ProblemRule] = []
"""Those about products."""
CONV_RULES: list[ProblemRule] = []
"""Those about convolutions."""


def rules_of(signature: Signature) -> list[ProblemRule]:
    """Return the rules that are asked about problems of a signature."""
    return CONV_RULES if signature.spatial else PROBLEM_RULES


def algorithm_rule(
    name: str, sentence: str, *, reads: tuple[str, ...]
) -> Callable[[AlgorithmCheck], AlgorithmCheck]:
    """Put the decorated function into the table of algorithm rules."""

    def register(check: AlgorithmCheck) -> AlgorithmCheck:
        _expect_fields(reads)
        ALGORITHM_RULES.append(AlgorithmRule(id=name, sentence=sentence, reads=reads, check=check))
        return check

    return register


def problem_rule(
    name: str,
    sentence: str,
    *,
    reads: tuple[str, ...],
    footprint: Footprint | None = None,
    table: list[ProblemRule] = PROBLEM_RULES,
) -> Callable[[ProblemCheck], ProblemCheck]:
    """Put the decorated function into a table of problem rules.

    ``footprint`` gives less than the values of the fields ``reads`` where the rule looks at less.
    """

    def values(algorithm: Algorithm) -> Hashable:
        return tuple(getattr(algorithm, name) for name in reads)

    def register(check: ProblemCheck) -> ProblemCheck:
        _expect_fields(reads)
        table.append(
            ProblemRule(
                id=name,
                sentence=sentence,
                reads=reads,
                check=check,
                footprint=footprint or values,
            )
        )
        return check

    return register


def _expect_fields(reads: tuple[str, ...]) -> None:
    for name in reads:
        attrgetter(name)(Algorithm)


def multiple(what: str, value: int, of: int) -> Objection | None:
    """Object unless ``value`` is a multiple of ``of``."""
    if value % of == 0:
        return None
    return Objection(what=what, value=str(value), bound=f"a multiple of {of}")
