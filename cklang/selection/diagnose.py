# SPDX-License-Identifier: MIT
"""What is wrong with an algorithm, what would be legal instead, and a legal one near it.

Nothing here is applied in silence: :func:`fix` returns a proposal and says what it changed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from cklang.arch import ArchSpec, arch
from cklang.codec import encode
from cklang.errors import error
from cklang.families import family_of
from cklang.families.rule import Rejection
from cklang.keys import KernelSignature
from cklang.selection.rules import violations
from cklang.selection.space import enumerate_legal, legal_values, satisfiable

_NEAREST = 3
"""How many values are offered for a field."""
_STEPS = 16
_SEARCHED = 20_000
"""How many legal algorithms are compared when changing one field after another leads nowhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One rule that objects, and the values with which it would not."""

    rule: str
    rejection: Rejection
    nearest: tuple[tuple[str, tuple[Any, ...]], ...]
    """For each field that alone can satisfy the rule: its nearest such values, best first."""

    def __str__(self) -> str:
        lines = [str(self.rejection)]
        for name, values in self.nearest:
            lines.append(f"  legal: {name} = {' or '.join(map(_text, values))}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field that a proposal changes."""

    field: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.field}: {_text(self.before)} -> {_text(self.after)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """A legal algorithm near an illegal one."""

    algorithm: Any
    changes: tuple[Change, ...]
    """What differs; empty if nothing had to."""

    def __str__(self) -> str:
        return "\n".join(map(str, self.changes)) or "nothing to change"


def _text(value: Any) -> str:
    plain = encode(value)
    return "x".join(map(str, plain)) if isinstance(plain, list) else str(plain)


def advise(
    algorithm: Any, signature: KernelSignature, gpu: ArchSpec | str, problem: Any = None
) -> tuple[Advice, ...]:
    """Return every rule that ``algorithm`` violates, each with the nearest legal values.

    Args:
        algorithm: How.
        signature: What is computed.
        gpu: The GPU or its name.
        problem: A problem, for the rules about extents, strides and addresses.

    Example:
        >>> algorithm = ck.dispatch.Algorithm(
        ...     tile=(128, 128, 32), warps=(2, 2, 1), warp_tile=(32, 32, 16),
        ...     vector_a=8, vector_b=8, vector_e=8, pad_k=False,
        ... )
        >>> problem = ck.dispatch.problem(256, 512, 63)
        >>> first, *more = ck.dispatch.advise(algorithm, problem.signature, "gfx942", problem)
        >>> print(first)
        pad-k: K is 63, must be a multiple of 32 (without padding along K the extent must be ...)
          legal: pad_k = True
    """
    spec = arch(gpu) if isinstance(gpu, str) else gpu
    return tuple(
        Advice(
            rule=violation.rule,
            rejection=violation,
            nearest=tuple(_nearest(violation.rule, algorithm, signature, spec, problem)),
        )
        for violation in violations(algorithm, signature, spec, problem)
    )


def _reads(rule: str, signature: KernelSignature) -> tuple[str, ...]:
    return {row.id: row.reads for row in family_of(signature).rules.rules}[rule]


def _nearest(
    rule: str, algorithm: Any, signature: KernelSignature, spec: ArchSpec, problem: Any
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    for name in _reads(rule, signature):
        now = getattr(algorithm, name)
        others = [value for value in legal_values(name, signature, spec) if value != now]
        distances = [_distance(now, value) for value in others]
        good = (
            others[at]
            for at in sorted(range(len(others)), key=distances.__getitem__)
            if not _objects(
                rule, replace(algorithm, **{name: others[at]}), signature, spec, problem
            )
        )
        legal = tuple(islice(good, _NEAREST))
        if legal:
            yield name, legal


def _objects(
    rule: str, algorithm: Any, signature: KernelSignature, spec: ArchSpec, problem: Any
) -> bool:
    rules = family_of(signature).rules
    for row in rules.algorithms:
        if row.id == rule:
            return row.check(algorithm, signature, spec) is not None
    problem_rule = next(row for row in rules.problems if row.id == rule)
    return problem is not None and problem_rule.check(problem, algorithm, spec) is not None


def _distance(a: Any, b: Any) -> float:
    """How far two values of a field are apart: factors of two for sizes, 1 for other choices."""
    if isinstance(a, bool) or not isinstance(a, int | tuple):
        return float(a != b)
    if isinstance(a, int):
        return float(abs(a - b) / max(a, b, 1))
    if len(a) != len(b):
        return float(abs(len(a) - len(b)))
    return float(sum(_distance(x, y) for x, y in zip(a, b, strict=True)))


def fix(
    algorithm: Any, signature: KernelSignature, gpu: ArchSpec | str, problem: Any = None
) -> Fix:
    """Propose a legal algorithm near ``algorithm``; the proposal says what it changed.

    It changes one field at a time: the change that leaves the fewest violations, and the smallest
    of those. If that reaches no legal algorithm, it takes the nearest of the first legal ones.

    Example:
        >>> algorithm = ck.dispatch.Algorithm(
        ...     tile=(128, 128, 32), warps=(2, 2, 1), warp_tile=(32, 32, 9),
        ...     vector_a=8, vector_b=8, vector_e=8,
        ... )
        >>> print(ck.dispatch.fix(algorithm, ck.dispatch.problem(256, 512, 64).signature, "gfx942"))
        warp_tile: 32x32x9 -> 32x32x8

    Raises:
        CkUnsupportedError: K009, no legal algorithm was found.
    """
    spec = arch(gpu) if isinstance(gpu, str) else gpu
    proposal = None
    if problem is None or not _hopeless(algorithm, signature, spec, problem):
        proposal = _step_by_step(algorithm, signature, spec, problem)
        proposal = proposal or _closest(algorithm, signature, spec, problem)
    if proposal is None:
        raise error("K009", algorithm=algorithm, signature=signature.words, arch=spec.name)
    return Fix(algorithm=proposal, changes=tuple(_changes(algorithm, proposal)))


def _hopeless(algorithm: Any, signature: KernelSignature, spec: ArchSpec, problem: Any) -> bool:
    """Whether a rule objects to ``problem`` whatever the algorithm."""
    return not all(
        satisfiable(rule, algorithm, problem, signature, spec)
        for rule in family_of(signature).rules.problems
    )


def _changes(before: Any, after: Any) -> Iterator[Change]:
    for name in before.__dataclass_fields__:
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            yield Change(field=name, before=old, after=new)


def _step_by_step(algorithm: Any, signature: KernelSignature, spec: ArchSpec, problem: Any) -> Any:
    current = family_of(signature).spelling.completed(algorithm, signature)
    left = _count(current, signature, spec, problem)
    for _ in range(_STEPS):
        if left == 0:
            return current
        options = {
            replace(current, **{name: value})
            for advice in advise(current, signature, spec, problem)
            for name, values in advice.nearest
            for value in values
        }
        if not options:
            return None
        counted = [(_count(o, signature, spec, problem), _away(algorithm, o), o) for o in options]
        best, _, chosen = min(counted, key=lambda row: (row[0], row[1], str(row[2])))
        if best >= left:
            return None
        current, left = chosen, best
    return None


def _count(algorithm: Any, signature: KernelSignature, spec: ArchSpec, problem: Any) -> int:
    return sum(1 for _ in violations(algorithm, signature, spec, problem))


def _away(a: Any, b: Any) -> float:
    names = a.__dataclass_fields__
    return sum(_distance(getattr(a, name), getattr(b, name)) for name in names)


def _closest(algorithm: Any, signature: KernelSignature, spec: ArchSpec, problem: Any) -> Any:
    legal: Iterable[Any] = islice(enumerate_legal(signature, spec), _SEARCHED)
    if problem is not None:
        legal = [a for a in legal if _count(a, signature, spec, problem) == 0]
    return min(legal, key=lambda a: _away(algorithm, a), default=None)
