# SPDX-License-Identifier: MIT
"""The rules, and the one function that asks them all.

``engine`` says what a rule is; ``algorithm``, ``problem``, ``batch``, ``convolution``,
``attention``, ``attention_transposed`` and ``attention_grad`` hold them; ``resources`` the LDS and
register sizes that they compare.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cklang.arch import ArchSpec
from cklang.families.attention import rules as _attention
from cklang.families.attention import trload_rules as _attention_transposed
from cklang.families.attention_backward import rules as _attention_grad
from cklang.families.conv import rules as _convolution
from cklang.families.family import AnyAlgorithm, AnySignature, Asked, blank
from cklang.families.gemm.rules import algorithm as _algorithm
from cklang.families.gemm.rules import batch as _batch
from cklang.families.gemm.rules import problem as _problem
from cklang.families.rule import (
    ALGORITHM_RULES,
    BOOKS,
    CONV_RULES,
    PROBLEM_RULES,
    AlgorithmRule,
    Book,
    Objection,
    ProblemRule,
    book_of,
    rules_of,
)

__all__ = [
    "ALGORITHM_RULES",
    "BOOKS",
    "CONV_RULES",
    "PROBLEM_RULES",
    "AlgorithmRule",
    "Book",
    "Objection",
    "ProblemRule",
    "Rejection",
    "book_of",
    "objections",
    "refusals",
    "rules_of",
]

# Importing them fills the tables; algorithm rules are asked first.
_FILLED_BY = (
    _algorithm,
    _problem,
    _batch,
    _convolution,
    _attention,
    _attention_transposed,
    _attention_grad,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """Why one candidate was not taken."""

    algorithm: AnyAlgorithm
    rule: str
    sentence: str
    objection: Objection

    def __str__(self) -> str:
        o = self.objection
        return f"{self.rule}: {o.what} is {o.value}, must be {o.bound} ({self.sentence})"


def objections(
    algorithm: AnyAlgorithm,
    signature: AnySignature,
    spec: ArchSpec,
    problem: Asked | None = None,
) -> Iterator[Rejection]:
    """Yield an objection for each rule that rejects ``algorithm``, in table order.

    Rules about problems are asked if there is a ``problem``.
    """
    book = book_of(signature)
    for rule in book.algorithms:
        found = rule.check(algorithm, signature, spec)
        if found is not None:
            yield _rejection(algorithm, rule, found)
    if problem is None:
        return
    for row in book.problems:
        found = row.check(problem, algorithm, spec)
        if found is not None:
            yield _rejection(algorithm, row, found)


def refusals(signature: AnySignature, spec: ArchSpec) -> Iterator[Rejection]:
    """Yield an objection for each rule that rejects every algorithm of ``signature``."""
    book = book_of(signature)
    any_ = blank(book.of)
    for rule in book.algorithms:
        found = None if rule.reads else rule.check(any_, signature, spec)
        if found is not None:
            yield _rejection(any_, rule, found)


def _rejection(
    algorithm: AnyAlgorithm, rule: AlgorithmRule | ProblemRule, found: Objection
) -> Rejection:
    return Rejection(algorithm=algorithm, rule=rule.id, sentence=rule.sentence, objection=found)
