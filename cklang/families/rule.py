# SPDX-License-Identifier: MIT
"""What a rule is, and the rules of a family.

A rule looks at one fact and returns what it saw against its bound, or None if it has no violation.
The same rows filter candidates, prune the enumeration, explain a choice, word a refusal, and tell
which values would be legal. Rules of an algorithm ask its signature and GPU; rules of a problem
ask extents, strides and addresses. Each family of kernels has a set of both.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from cklang.arch import ArchSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """What a rule saw and what it allows."""

    what: str
    value: str
    bound: str


# Algorithm, signature and problem are those of the rule's family.
AlgorithmCheck = Callable[[Any, Any, ArchSpec], Violation | None]
ProblemCheck = Callable[[Any, Any, ArchSpec], Violation | None]
DecisionKey = Callable[[Any], Hashable]
AlwaysSatisfied = Callable[[Any, ArchSpec], bool]


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
    decision_key: DecisionKey
    """What of an algorithm decides: equal decision keys get equal answers."""
    always_satisfied: AlwaysSatisfied
    """Whether it objects to no algorithm for a problem, as the problem alone can tell; if it may
    object, False. Spares a selection the check of each decision key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """Why one candidate was not taken."""

    algorithm: Any
    rule: str
    sentence: str
    violation: Violation

    def __str__(self) -> str:
        o = self.violation
        return f"{self.rule}: {o.what} is {o.value}, must be {o.bound} ({self.sentence})"


def _never(problem: Any, spec: ArchSpec) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RuleSet:
    """All rules of one family of kernels; the modules that hold them fill it as they are read."""

    placeholder: Any
    """The placeholder of an unknown algorithm."""
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
        decision_key: DecisionKey | None = None,
        always_satisfied: AlwaysSatisfied = _never,
    ) -> Callable[[ProblemCheck], ProblemCheck]:
        """Add the decorated function as a rule about problems.

        ``decision_key`` gives less than the values of the fields ``reads`` where the rule looks at
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
                    decision_key=decision_key or values,
                    always_satisfied=always_satisfied,
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
            violation = rule.check(algorithm, signature, spec)
            if violation is not None:
                yield _rejection(algorithm, rule, violation)
        if problem is None:
            return
        for row in self.problems:
            violation = row.check(problem, algorithm, spec)
            if violation is not None:
                yield _rejection(algorithm, row, violation)

    def accepts(self, algorithm: Any, signature: Any, spec: ArchSpec, problem: Any = None) -> bool:
        """Whether no rule objects."""
        return next(self.rejections(algorithm, signature, spec, problem), None) is None

    def refusals(self, signature: Any, spec: ArchSpec) -> Iterator[Rejection]:
        """Yield a rejection for each rule that objects to every algorithm of ``signature``."""
        for rule in self.algorithms:
            violation = None if rule.reads else rule.check(self.placeholder, signature, spec)
            if violation is not None:
                yield _rejection(self.placeholder, rule, violation)


def _rejection(
    algorithm: Any, rule: AlgorithmRule | ProblemRule, violation: Violation
) -> Rejection:
    return Rejection(algorithm=algorithm, rule=rule.id, sentence=rule.sentence, violation=violation)
