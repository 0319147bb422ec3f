# SPDX-License-Identifier: MIT
"""What a rule is, and the rules of a family.

A rule looks at one fact and returns what it saw against its bound, or None if it has no objection.
The same rows filter candidates, prune the enumeration, explain a choice, word a refusal, and tell
which values would be legal. Rules of an algorithm ask its signature and GPU; rules of a problem
ask extents, strides and addresses. Each family of kernels has a set of both.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from cklang.arch import ArchSpec

__all__ = ["AlgorithmRule", "Objection", "ProblemRule", "Rejection", "RuleSet"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """What a rule saw and what it allows."""

    what: str
    value: str
    bound: str


# Algorithm, signature and problem are those of the rule's family.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """Why one candidate was not taken."""

    algorithm: Any
    rule: str
    sentence: str
    objection: Objection

    def __str__(self) -> str:
        o = self.objection
        return f"{self.rule}: {o.what} is {o.value}, must be {o.bound} ({self.sentence})"


def _never(problem: Any, spec: ArchSpec) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RuleSet:
    """All rules of one family of kernels; the modules that hold them fill it as they are read."""

    placeholder: Any
    """An algorithm that stands for one of which nothing is known."""
    algorithms: list[AlgorithmRule] = field(default_factory=list)
    problems: list[ProblemRule] = field(default_factory=list)

    @property
    def rules(self) -> tuple[AlgorithmRule | ProblemRule, ...]:
        """All of them, in the order in which they are asked."""
        return (*self.algorithms, *self.problems)

    def algorithm(
        self, name: str, sentence: str, *, reads: tuple[str, ...]
    ) -> Callable[[AlgorithmCheck], AlgorithmCheck]:
        """Add the decorated function as a rule about algorithms."""

        def register(check: AlgorithmCheck) -> AlgorithmCheck:
            self._expect_fields(reads)
            rule = AlgorithmRule(id=name, sentence=sentence, reads=reads, check=check)
            self.algorithms.append(rule)
            return check

        return register

    def problem(
        self,
        name: str,
        sentence: str,
        *,
        reads: tuple[str, ...],
        footprint: Footprint | None = None,
        harmless: Harmless = _never,
    ) -> Callable[[ProblemCheck], ProblemCheck]:
        """Add the decorated function as a rule about problems.

        ``footprint`` gives less than the values of the fields ``reads`` where the rule looks at
        less.
        """

        def values(algorithm: Any) -> Hashable:
            return tuple(getattr(algorithm, name) for name in reads)

        def register(check: ProblemCheck) -> ProblemCheck:
            self._expect_fields(reads)
            self.problems.append(
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

    def _expect_fields(self, reads: Sequence[str]) -> None:
        for name in reads:
            attrgetter(name)(self.placeholder)

    def rejections(
        self, algorithm: Any, signature: Any, spec: ArchSpec, problem: Any = None
    ) -> Iterator[Rejection]:
        """Yield a rejection for each rule that objects to ``algorithm``, in order.

        Rules about problems are asked if there is a ``problem``.
        """
        for rule in self.algorithms:
            objection = rule.check(algorithm, signature, spec)
            if objection is not None:
                yield _rejection(algorithm, rule, objection)
        if problem is None:
            return
        for row in self.problems:
            objection = row.check(problem, algorithm, spec)
            if objection is not None:
                yield _rejection(algorithm, row, objection)

    def accepts(self, algorithm: Any, signature: Any, spec: ArchSpec, problem: Any = None) -> bool:
        """Whether no rule objects."""
        return next(self.rejections(algorithm, signature, spec, problem), None) is None

    def refusals(self, signature: Any, spec: ArchSpec) -> Iterator[Rejection]:
        """Yield a rejection for each rule that objects to every algorithm of ``signature``."""
        for rule in self.algorithms:
            objection = None if rule.reads else rule.check(self.placeholder, signature, spec)
            if objection is not None:
                yield _rejection(self.placeholder, rule, objection)


def _rejection(
    algorithm: Any, rule: AlgorithmRule | ProblemRule, objection: Objection
) -> Rejection:
    return Rejection(algorithm=algorithm, rule=rule.id, sentence=rule.sentence, objection=objection)
