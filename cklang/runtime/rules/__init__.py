# SPDX-License-Identifier: MIT
"""The rules, and the one function that asks them all.

``engine`` says what a rule is; ``algorithm``, ``problem``, ``batch`` and ``convolution`` hold them;
``resources`` the LDS and register sizes that they compare.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cklang.arch import ArchSpec
from cklang.keys import Algorithm, Signature
from cklang.runtime.convolution import AnyProblem
from cklang.runtime.rules import algorithm as _algorithm
from cklang.runtime.rules import batch as _batch
from cklang.runtime.rules import convolution as _convolution
from cklang.runtime.rules import problem as _problem
from cklang.runtime.rules.engine import (
    ALGORITHM_RULES,
    CONV_RULES,
    PROBLEM_RULES,
    AlgorithmRule,
    Objection,
    ProblemRule,
    rules_of,
)

__all__ = [
    "ALGORITHM_RULES",
    "CONV_RULES",
    "PROBLEM_RULES",
    "AlgorithmRule",
    "Objection",
    "ProblemRule",
    "Rejection",
    "objections",
    "refusals",
    "rules_of",
]

# Importing them fills the tables; algorithm rules are asked first.
_FILLED_BY = (_algorithm, _problem, _batch, _convolution)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """Why one candidate was not taken."""

    algorithm: Algorithm
    rule: str
    sentence: str
    objection: Objection

    def __str__(self) -> str:
        o = self.objection
        return f"{self.rule}: {o.what} is {o.value}, must be {o.bound} ({self.sentence})"


def objections(
    algorithm: Algorithm,
    signature: Signature,
    spec: ArchSpec,
    problem: AnyProblem | None = None,
) -> Iterator[Rejection]:
    """Yield an objection for each rule that rejects ``algorithm``, in table order.

    Rules about problems are asked if there is a ``problem``.
    """
    for rule in ALGORITHM_RULES:
        found = rule.check(algorithm, signature, spec)
        if found is not None:
            yield _rejection(algorithm, rule, found)
    if problem is not None:
        yield from _problem_objections(algorithm, spec, problem)


_ANY = Algorithm(
    tile=(1, 1, 1), warps=(1, 1, 1), warp_tile=(1, 1, 1), vector_a=1, vector_b=1, vector_e=1
)


def refusals(signature: Signature, spec: ArchSpec) -> Iterator[Rejection]:
    """Yield an objection for each rule that rejects every algorithm of ``signature``."""
    for rule in ALGORITHM_RULES:
        found = None if rule.reads else rule.check(_ANY, signature, spec)
        if found is not None:
            yield _rejection(_ANY, rule, found)


def _problem_objections(
    algorithm: Algorithm, spec: ArchSpec, problem: AnyProblem
) -> Iterator[Rejection]:
    for rule in rules_of(problem.signature):
        found = rule.check(problem, algorithm, spec)
        if found is not None:
            yield _rejection(algorithm, rule, found)


def _rejection(
    algorithm: Algorithm, rule: AlgorithmRule | ProblemRule, found: Objection
) -> Rejection:
    return Rejection(algorithm=algorithm, rule=rule.id, sentence=rule.sentence, objection=found)
