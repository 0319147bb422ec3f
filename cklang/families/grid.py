# SPDX-License-Identifier: MIT
"""Sets of algorithms and the walk through those that are legal, the same for every family.

A grid says in which order the fields of an algorithm are chosen and what each may be. The walk is
lazy and prunes: a rule is asked as soon as the fields it reads are chosen.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar, cast

from cklang.arch import ArchSpec
from cklang.codec import decode, hints_of, unknown
from cklang.errors import error
from cklang.families.rule import AlgorithmRule, RuleSet
from cklang.keys import KernelSignature

ANY = "*"
"""In a pattern: every value that is legal."""

A = TypeVar("A")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A set of algorithms, made by ``ck.dispatch.pattern`` or ``ck.dispatch.attention_pattern``.

    Example:
        >>> pattern = ck.dispatch.pattern(tile=[(128, 128, 32), (64, 64, 32)], pipeline="*")
        >>> pattern.choices
        {'tile': ((128, 128, 32), (64, 64, 32)), 'pipeline': None}
    """

    choices: Mapping[str, tuple[Any, ...] | None]
    """For each field that was named its values; None stands for all that are legal."""
    of: type[Any]
    """The class of the algorithms."""

    def accepts(self, algorithm: object) -> bool:
        """Whether each field of ``algorithm`` that the pattern names has one of its values.

        Example:
            >>> problem = ck.dispatch.problem(8192, 8192, 8192)
            >>> algorithm = ck.dispatch.select(problem, arch="gfx942").key.algorithm
            >>> ck.dispatch.pattern(tile=algorithm.tile).accepts(algorithm)
            True
        """
        return isinstance(algorithm, self.of) and all(
            values is None or getattr(algorithm, name) in values
            for name, values in self.choices.items()
        )

    def values(self, name: str, everything: Sequence[Any]) -> Sequence[Any]:
        """Return the values of a field in order; ``everything`` is what ``*`` stands for.

        Example:
            >>> pattern.values("tile", everything=())
            ((128, 128, 32), (64, 64, 32))
            >>> pattern.values("pipeline", everything=("compv3", "mem"))
            ('compv3', 'mem')
        """
        if name in self.choices:
            named = self.choices[name]
            return everything if named is None else named
        default = _defaults(cast("Any", self.of)).get(name, MISSING)
        return everything if default is MISSING else (default,)


@cache
def _defaults(of: Any) -> dict[str, Any]:
    # Epilogue operands are given with the other widths, or left free with them.
    return {f.name: f.default for f in fields(of) if f.name != "vector_d"}


def pattern_of(of: type[Any], choices: Mapping[str, Any]) -> Pattern:
    """Return the pattern of class ``of`` that ``choices`` describe."""
    hints = hints_of(cast("Any", of))
    read = {name: _values(hints, name, value) for name, value in choices.items()}
    return Pattern(choices=read, of=of)


def _values(hints: Mapping[str, Any], name: str, choice: Any) -> tuple[Any, ...] | None:
    if name not in hints:
        raise unknown("algorithm field", name, list(hints))
    if isinstance(choice, str) and choice == ANY:
        return None
    several = choice if isinstance(choice, list | set | frozenset) else [choice]
    if not several:
        raise error("K024", name=name, got=choice)
    return tuple(decode(hints[name], value, name) for value in several)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid(Generic[A]):
    """How the algorithms of one family are enumerated."""

    of: type[A]
    order: tuple[str, ...]
    """The steps of the walk: fields, and names for fields that are chosen together."""
    joint: Mapping[str, tuple[str, ...]]
    """The fields of the latter."""
    choices: Callable[[str, Any, ArchSpec, Pattern], Iterator[dict[str, Any]]]
    """(step, signature, GPU, pattern): the values of a step's fields, in order."""
    values: Callable[[str, Any, ArchSpec], Sequence[Any]]
    """(field, signature, GPU): what the field may be at all."""
    rules: RuleSet
    prune: Callable[[Collection[str], Any, A], bool] = lambda steps, signature, algorithm: False
    """Whether nothing can come of what steps chose last, as is known before rules ask."""

    @property
    def everything(self) -> Pattern:
        """The pattern of all algorithms."""
        names = (f.name for f in fields(self.rules.placeholder))
        return Pattern(choices=dict.fromkeys(names), of=self.of)

    def rules_at(self) -> tuple[tuple[AlgorithmRule, ...], ...]:
        """For each step: the rules whose fields are all chosen there."""
        return _rules_at(self.rules, self.order, tuple(self.joint.items()))


@cache
def _rules_at(
    rules: RuleSet, order: tuple[str, ...], joint: tuple[tuple[str, tuple[str, ...]], ...]
) -> tuple[tuple[AlgorithmRule, ...], ...]:
    place = {name: index for index, name in enumerate(order)}
    for step, names in joint:
        place |= dict.fromkeys(names, place[step])
    last = [max((place[name] for name in rule.reads), default=0) for rule in rules.algorithms]
    return tuple(
        tuple(r for r, at in zip(rules.algorithms, last, strict=True) if at == index)
        for index in range(len(order))
    )


def independent(of: type[A], values: Mapping[str, Sequence[Any]], rules: RuleSet) -> Grid[A]:
    """Return the grid of algorithms whose fields are chosen one by one, each among its values."""

    def choices(
        step: str, _signature: Any, _spec: ArchSpec, among: Pattern
    ) -> Iterator[dict[str, Any]]:
        for value in among.values(step, values[step]):
            yield {step: value}

    return Grid(
        of=of,
        order=tuple(values),
        joint={},
        choices=choices,
        values=lambda name, _signature, _spec: values[name],
        rules=rules,
    )


def walk(grid: Grid[A], signature: KernelSignature, spec: ArchSpec, among: Pattern) -> Iterator[A]:
    """Yield every algorithm of ``among`` that the algorithm rules allow, in the grid's order."""
    if among.of is not grid.of:
        raise error("K023", want=grid.of.__name__, got=among.of.__name__)
    steps = _steps(grid, signature, spec, among)
    yield from _extend(_free(grid.rules), steps, grid, signature, spec)


class _Step(NamedTuple):
    """Fields that are chosen at once."""

    names: frozenset[str]
    """The steps of the grid."""
    choices: tuple[dict[str, Any], ...]
    rules: tuple[AlgorithmRule, ...]
    """Those that are asked then."""


def _steps(
    grid: Grid[A], signature: KernelSignature, spec: ArchSpec, among: Pattern
) -> tuple[_Step, ...]:
    """Return the steps of a walk: those of one choice are taken together with the one before."""
    steps: list[_Step] = []
    for name, rules in zip(grid.order, grid.rules_at(), strict=True):
        choices = tuple(grid.choices(name, signature, spec, among))
        names = frozenset({name})
        if steps and len(choices) == 1:
            last = steps.pop()
            choices = tuple({**own, **choices[0]} for own in last.choices)
            names, rules = last.names | names, (*last.rules, *rules)
        steps.append(_Step(names, choices, rules))
    return tuple(steps)


def _extend(
    chosen: dict[str, Any],
    steps: tuple[_Step, ...],
    grid: Grid[A],
    signature: KernelSignature,
    spec: ArchSpec,
) -> Iterator[A]:
    step, *others = steps
    for more in step.choices:
        extended = {**chosen, **more}
        algorithm = grid.of(**extended)
        if grid.prune(step.names, signature, algorithm):
            continue
        if any(rule.check(algorithm, signature, spec) for rule in step.rules):
            continue
        if others:
            yield from _extend(extended, tuple(others), grid, signature, spec)
        else:
            yield algorithm


@cache
def _free(rules: RuleSet) -> dict[str, Any]:
    """Stands for fields without default that are not chosen yet; no rule then looks at them."""
    empty = rules.placeholder
    return {f.name: getattr(empty, f.name) for f in fields(empty) if f.default is MISSING}
