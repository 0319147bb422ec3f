# SPDX-License-Identifier: MIT
"""What a rule is. Every rule of cklang is one function in one of the tables made here.

A rule looks at one fact and returns what it saw against its bound, or None if it has no objection.
The same rows filter candidates, prune the enumeration, explain a choice, word a refusal, and tell
which values would be legal. Rules of an algorithm ask its signature and GPU; rules of a problem
ask extents, strides and addresses. Each family of kernels has a book of both.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from cklang.arch import ArchSpec
from cklang.attention_keys import (
    AttentionAlgorithm,
    AttentionGradAlgorithm,
    AttentionGradSignature,
    AttentionSignature,
)
from cklang.families.family import AnyAlgorithm, AnySignature
from cklang.keys import Algorithm, Signature

__all__ = [
    "ALGORITHM_RULES",
    "ATTENTION_GRAD_PROBLEM_RULES",
    "ATTENTION_GRAD_RULES",
    "ATTENTION_PROBLEM_RULES",
    "ATTENTION_RULES",
    "BOOKS",
    "CONV_RULES",
    "PROBLEM_RULES",
    "AlgorithmRule",
    "Book",
    "Objection",
    "ProblemRule",
    "algorithm_rule",
    "book_of",
    "problem_rule",
    "rules_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """What a rule saw and what it allows."""

    what: str
    value: str
    bound: str


# Algorithm, signature and problem are those of the table's family.
AlgorithmCheck = Callable[[Any, Any, ArchSpec], Objection | None]
ProblemCheck = Callable[[Any, Any, ArchSpec], Objection | None]
Footprint = Callable[[Any], Hashable]
Harmless = Callable[[Any, ArchSpec], bool]


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
    harmless: Harmless
    """Whether it objects to no algorithm for a problem, as the problem alone can tell; if it may
    object, False. Spares a selection the question for each footprint."""


ALGORITHM_RULES: list[AlgorithmRule] = []
"""Those about products and convolutions, in the order in which they are asked."""
PROBLEM_RULES: list[ProblemRule] = []
"""Those about products."""
CONV_RULES: list[ProblemRule] = []
"""Those about convolutions."""
ATTENTION_RULES: list[AlgorithmRule] = []
"""Those about attention forwards."""
ATTENTION_PROBLEM_RULES: list[ProblemRule] = []
ATTENTION_GRAD_RULES: list[AlgorithmRule] = []
"""Those about its gradients."""
ATTENTION_GRAD_PROBLEM_RULES: list[ProblemRule] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """All rules of one family of kernels."""

    algorithms: list[AlgorithmRule]
    problems: list[ProblemRule]
    of: type[AnyAlgorithm]
    """The class of the algorithms that they judge."""

    @property
    def rules(self) -> tuple[AlgorithmRule | ProblemRule, ...]:
        """All of them, in the order in which they are asked."""
        return (*self.algorithms, *self.problems)


BOOKS = {
    "product": Book(algorithms=ALGORITHM_RULES, problems=PROBLEM_RULES, of=Algorithm),
    "convolution": Book(algorithms=ALGORITHM_RULES, problems=CONV_RULES, of=Algorithm),
    "attention": Book(
        algorithms=ATTENTION_RULES, problems=ATTENTION_PROBLEM_RULES, of=AttentionAlgorithm
    ),
    "attention_grad": Book(
        algorithms=ATTENTION_GRAD_RULES,
        problems=ATTENTION_GRAD_PROBLEM_RULES,
        of=AttentionGradAlgorithm,
    ),
}
"""The rules of each family."""


def book_of(signature: AnySignature) -> Book:
    """Return the rules of the family of a signature."""
    if isinstance(signature, Signature):
        return BOOKS["convolution" if signature.spatial else "product"]
    return BOOKS[_ATTENTION[type(signature)]]


_ATTENTION = {AttentionSignature: "attention", AttentionGradSignature: "attention_grad"}


def rules_of(signature: AnySignature) -> list[ProblemRule]:
    """Return the rules that are asked about problems of a signature."""
    return book_of(signature).problems


def algorithm_rule(
    name: str,
    sentence: str,
    *,
    reads: tuple[str, ...],
    table: list[AlgorithmRule] = ALGORITHM_RULES,
    of: type[AnyAlgorithm] = Algorithm,
) -> Callable[[AlgorithmCheck], AlgorithmCheck]:
    """Put the decorated function into a table of rules about algorithms of class ``of``."""

    def register(check: AlgorithmCheck) -> AlgorithmCheck:
        _expect_fields(reads, of)
        table.append(AlgorithmRule(id=name, sentence=sentence, reads=reads, check=check))
        return check

    return register


def problem_rule(
    name: str,
    sentence: str,
    *,
    reads: tuple[str, ...],
    footprint: Footprint | None = None,
    harmless: Harmless = lambda problem, spec: False,
    table: list[ProblemRule] = PROBLEM_RULES,
    of: type[AnyAlgorithm] = Algorithm,
) -> Callable[[ProblemCheck], ProblemCheck]:
    """Put the decorated function into a table of problem rules.

    ``footprint`` gives less than the values of the fields ``reads`` where the rule looks at less.
    """

    def values(algorithm: AnyAlgorithm) -> Hashable:
        return tuple(getattr(algorithm, name) for name in reads)

    def register(check: ProblemCheck) -> ProblemCheck:
        _expect_fields(reads, of)
        table.append(
            ProblemRule(
                id=name,
                sentence=sentence,
                reads=reads,
                check=check,
                footprint=footprint or values,
                harmless=harmless,
            )
        )
        return check

    return register


def _expect_fields(reads: tuple[str, ...], of: type[AnyAlgorithm]) -> None:
    for name in reads:
        attrgetter(name)(of)
