# SPDX-License-Identifier: MIT
"""Integers that remember how they were computed, so that a plan holds for more than one call.

Planning is arithmetic on extents and strides with decisions in between. Run on :class:`Traced`
numbers it gives what it gives for one call, and beside that each number as a polynomial of the free
extents, and each decision as a *condition*: a polynomial that is zero, is not zero, or is not
negative. For all extents that fulfil the conditions the plan is the same, with other numbers.

Whatever needs the number itself (a hash, an index, a range) is refused: such a plan would hold for
one call alone. So nothing is ever assumed.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from enum import IntEnum
from itertools import product
from typing import Any, TypeAlias

from cklang.dims import is_ranking, multiplied, summed
from cklang.errors import CkError, error

Polynomial: TypeAlias = tuple[tuple[tuple[int, ...], int], ...]
"""The terms of a sum: the atoms of a product, by their numbers, and its factor."""

_Bounds: TypeAlias = tuple[int, int] | None

_HASHES = ("__hash__", "__post_init__")
"""Functions that hash a record as a whole, whose equality is asked before two count as one."""


class Relation(IntEnum):
    """What a condition says of a polynomial."""

    ZERO = 0
    NOT_ZERO = 1
    NOT_NEGATIVE = 2


@dataclass(frozen=True, slots=True)
class Atom:
    """A number that polynomials take as it is: a variable, or a quotient or rest of two others."""

    name: str
    """The name of a variable; else ``//`` or ``%``."""
    of: tuple[Polynomial, ...] = ()
    bounds: _Bounds = None
    """The least and the greatest value; None if they are not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What must hold of extents and strides for a plan to be theirs."""

    relation: Relation
    of: Polynomial
    why: str
    """What asked: a rule with its sentence, or the module that planned."""


@dataclass(slots=True)
class Trace:
    """The variables of a plan and the conditions under which it holds."""

    atoms: list[Atom] = field(default_factory=list)
    conditions: dict[tuple[Relation, Polynomial], Condition] = field(default_factory=dict)
    why: str = ""
    _numbers: dict[Atom, int] = field(default_factory=dict)
    _hints: list[int] = field(default_factory=list)

    def variable(self, name: str, hint: int, bounds: tuple[int, int]) -> Any:
        """Return a new variable, whose value is ``hint`` in the call that is planned.

        It is a :class:`Traced`, which planning takes for an integer.
        """
        return Traced(self, self.atom(name, (), bounds, hint), hint)

    @contextmanager
    def asked_by(self, why: str) -> Iterator[None]:
        """Let conditions say who asked."""
        before, self.why = self.why, why
        try:
            yield
        finally:
            self.why = before

    def add(self, relation: Relation, of: Polynomial) -> None:
        """Note a condition."""
        if (relation, of) not in self.conditions:
            why = self.why or f"{_asking()} plans such a call otherwise"
            self.conditions[relation, of] = Condition(relation=relation, of=of, why=why)

    def atom(self, name: str, of: tuple[Polynomial, ...], bounds: _Bounds, hint: int) -> Polynomial:
        """Return a variable, a quotient or a rest as a polynomial."""
        atom = Atom(name, of, bounds)
        number = self._numbers.get(atom)
        if number is None:
            number = self._numbers[atom] = len(self.atoms)
            self.atoms.append(atom)
            self._hints.append(hint)
        return (((number,), 1),)

    def value(self, polynomial: Polynomial) -> int:
        """Return a polynomial's value in the call that is planned."""
        return sum(
            factor * math.prod(self._hints[number] for number in atoms)
            for atoms, factor in polynomial
        )

    def bounds(self, polynomial: Polynomial) -> _Bounds:
        """Return the least and the greatest value; None if they are not known."""
        low = high = 0
        for atoms, factor in polynomial:
            least, most = factor, factor
            for number in atoms:
                own = self.atoms[number].bounds
                if own is None:
                    return None
                ends = [a * b for a, b in product((least, most), own)]
                least, most = min(ends), max(ends)
            low, high = low + least, high + most
        return low, high


def _asking() -> str:
    """Return the module that computes with traced numbers, without what all have in common."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__") == __name__ and frame.f_back is not None:
        frame = frame.f_back
    name: str = frame.f_globals["__name__"]
    return name.removeprefix("cklang.").removeprefix("families.")


@dataclass(frozen=True, slots=True)
class _Ratio:
    """A quotient that is rounded at once, as by ``math.ceil``."""

    over: int | Traced
    under: int | Traced

    def __ceil__(self) -> Any:
        return -_quotient(-self.over, self.under)

    def __floor__(self) -> Any:
        return _quotient(self.over, self.under)


def polynomial_of(value: int | Traced) -> Polynomial:
    """Return a number as a polynomial."""
    if isinstance(value, Traced):
        return value.polynomial
    return (((), int(value)),) if value else ()


def _sum(a: Polynomial, b: Polynomial, factor: int = 1) -> Polynomial:
    return _ordered(summed(dict(a), dict(b), factor))


def _ordered(terms: Mapping[tuple[int, ...], int]) -> Polynomial:
    return tuple(sorted((atoms, factor) for atoms, factor in terms.items() if factor))


class Traced:
    """An integer of a call that is planned, as a polynomial of its free extents.

    Example:
        >>> from cklang.exporting.traced import Trace
        >>> trace = Trace()
        >>> rows = trace.variable("M", 70, (1, 1 << 20))
        >>> tiles = -(-rows // 64)
        >>> tiles.hint, tiles > 1, len(trace.conditions)
        (2, True, 1)
        >>> rows >= 1, (2 * rows) % 2, len(trace.conditions)  # true of all, or no variable left
        (True, 0, 1)
    """

    __slots__ = ("hint", "polynomial", "trace")

    def __init__(self, trace: Trace, polynomial: Polynomial, hint: int) -> None:
        self.trace = trace
        self.polynomial = polynomial
        self.hint = hint

    def _new(self, polynomial: Polynomial, hint: int) -> int:
        if not polynomial or polynomial[-1][0] == ():
            return polynomial[0][1] if polynomial else 0
        # It stands for an integer wherever planning computes with it.
        return Traced(self.trace, polynomial, hint)  # type: ignore[return-value]

    def __add__(self, other: object) -> Any:
        if not isinstance(other, int | Traced):
            return float(self) + other if isinstance(other, float) else NotImplemented
        return self._new(_sum(self.polynomial, polynomial_of(other)), self.hint + _hint(other))

    __radd__ = __add__

    def __sub__(self, other: object) -> Any:
        if not isinstance(other, int | Traced):
            return float(self) - other if isinstance(other, float) else NotImplemented
        return self._new(_sum(self.polynomial, polynomial_of(other), -1), self.hint - _hint(other))

    def __rsub__(self, other: object) -> Any:
        return (-self) + other

    def __mul__(self, other: object) -> Any:
        if not isinstance(other, int | Traced):
            return float(self) * other if isinstance(other, float) else NotImplemented
        return self._new(
            _ordered(multiplied(dict(self.polynomial), dict(polynomial_of(other)))),
            self.hint * _hint(other),
        )

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __floordiv__(self, other: object) -> Any:
        if not isinstance(other, int | Traced):
            return NotImplemented
        return _quotient(self, other)

    def __rfloordiv__(self, other: object) -> Any:
        return _quotient(other, self) if isinstance(other, int) else NotImplemented

    def __mod__(self, other: object) -> Any:
        if not isinstance(other, int | Traced):
            return NotImplemented
        return _rest(self, other)

    def __rmod__(self, other: object) -> Any:
        return _rest(other, self) if isinstance(other, int) else NotImplemented

    def __divmod__(self, other: object) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: object) -> Any:
        return other // self, other % self

    def __and__(self, other: object) -> Any:
        if isinstance(other, int) and other >= 0 and other & (other + 1) == 0:
            return self % (other + 1)
        raise self._refusal()

    __rand__ = __and__

    def __truediv__(self, other: object) -> Any:
        if is_ranking() or not isinstance(other, int | Traced):
            return float(self) / float(other)  # type: ignore[arg-type]
        return _Ratio(self, other)

    def __rtruediv__(self, other: object) -> Any:
        if is_ranking() or not isinstance(other, int):
            return float(other) / float(self)  # type: ignore[arg-type]
        return _Ratio(other, self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, int | Traced):
            return float(self) == other if isinstance(other, float) else NotImplemented
        return self._is_zero(_sum(self.polynomial, polynomial_of(other), -1), _hint(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> bool:
        return not self >= other

    def __ge__(self, other: Any) -> bool:
        if not isinstance(other, int | Traced):
            return float(self) >= float(other)
        return self._is_at_least(other)

    def __le__(self, other: Any) -> bool:
        return bool((-self) >= -other)

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __bool__(self) -> bool:
        return self != 0

    def __hash__(self) -> int:
        if sys._getframe(1).f_code.co_name not in _HASHES:
            raise self._refusal()
        return hash(self.hint)

    def __index__(self) -> int:
        raise self._refusal()

    __int__ = __index__

    def __float__(self) -> float:
        if is_ranking():
            return float(self.hint)
        raise self._refusal()

    def bit_length(self) -> int:
        """Refuse to say how many bits the number has."""
        raise self._refusal()

    def __repr__(self) -> str:
        return repr(self.hint)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(self.hint, spec)

    def _is_zero(self, difference: Polynomial, other: int) -> bool:
        bounds = self.trace.bounds(difference)
        if bounds is not None and (bounds == (0, 0) or bounds[0] > 0 or bounds[1] < 0):
            return bounds == (0, 0)
        if self.hint == other:
            self.trace.add(Relation.ZERO, difference)
            return True
        self.trace.add(Relation.NOT_ZERO, difference)
        return False

    def _is_at_least(self, other: int | Traced) -> bool:
        difference = _sum(self.polynomial, polynomial_of(other), -1)
        bounds = self.trace.bounds(difference)
        if bounds is not None and (bounds[0] >= 0 or bounds[1] < 0):
            return bounds[0] >= 0
        if self.hint >= _hint(other):
            self.trace.add(Relation.NOT_NEGATIVE, difference)
            return True
        less = _sum((((), -1),), difference, -1)
        self.trace.add(Relation.NOT_NEGATIVE, less)
        return False

    def _refusal(self) -> CkError:
        names = sorted(set(_names(self.polynomial, self.trace.atoms)))
        return error("K073", what=", ".join(names), why=_asking())


def _names(polynomial: Polynomial, atoms: Sequence[Atom]) -> Iterator[str]:
    """Yield the variables of a polynomial."""
    for number in {number for own, _ in polynomial for number in own}:
        if not atoms[number].of:
            yield atoms[number].name
        for part in atoms[number].of:
            yield from _names(part, atoms)


def _hint(value: Any) -> int:
    return value.hint if isinstance(value, Traced) else int(value)


def _divided(a: int | Traced, b: int | Traced) -> tuple[Trace, Polynomial, Polynomial, _Bounds]:
    """Return both polynomials of a division and the bounds of the divisor, which is not zero."""
    trace = a.trace if isinstance(a, Traced) else b.trace  # type: ignore[union-attr]
    divisor = polynomial_of(b)
    bounds = trace.bounds(divisor)
    if isinstance(b, Traced) and not b:
        raise ZeroDivisionError("a traced number is zero")
    return trace, polynomial_of(a), divisor, bounds


def _quotient(a: int | Traced, b: int | Traced) -> Any:
    if isinstance(b, int) and isinstance(a, Traced) and b:
        parts = [(atoms, *divmod(factor, b)) for atoms, factor in a.polynomial]
        if not any(rest for _, _, rest in parts):
            return a._new(tuple((atoms, part) for atoms, part, _ in parts), a.hint // b)
    trace, dividend, divisor, of_b = _divided(a, b)
    of_a, bounds = trace.bounds(dividend), None
    if of_a is not None and of_b is not None and (of_b[0] > 0 or of_b[1] < 0):
        ends = [x // y for x, y in product(of_a, of_b)]
        bounds = min(ends), max(ends)
    quotient = _hint(a) // _hint(b)
    return Traced(trace, trace.atom("//", (dividend, divisor), bounds, quotient), quotient)


def _rest(a: int | Traced, b: int | Traced) -> Any:
    if isinstance(b, int) and isinstance(a, Traced) and b:
        # Terms that are whole multiples leave no rest.
        left = _ordered({atoms: factor % b for atoms, factor in a.polynomial})
        a = a._new(left, a.trace.value(left))
        if isinstance(a, int):
            return a % b
    trace, dividend, divisor, of_b = _divided(a, b)
    own, bounds = trace.bounds(dividend), None
    if of_b is not None and of_b[0] > 0:
        if own is not None and own[0] >= 0 and own[1] < of_b[0]:
            return a
        bounds = 0, of_b[1] - 1
    rest = _hint(a) % _hint(b)
    return Traced(trace, trace.atom("%", (dividend, divisor), bounds, rest), rest)


def mapped(value: Any, change: Callable[[Traced], Any]) -> Any:
    """Return a record with each traced number in it replaced; the same object if it has none."""
    if isinstance(value, Traced):
        return change(value)
    if isinstance(value, tuple | list):
        parts = [mapped(item, change) for item in value]
        return value if _same(parts, value) else _rebuilt(value, parts)
    if isinstance(value, Mapping) and type(value) is dict:
        own = {name: mapped(item, change) for name, item in value.items()}
        return value if _same(list(own.values()), list(value.values())) else own
    if is_dataclass(value) and not isinstance(value, type):
        names = [entry.name for entry in fields(value) if entry.init]
        before = [getattr(value, name) for name in names]
        after = [mapped(item, change) for item in before]
        return (
            value if _same(after, before) else type(value)(**dict(zip(names, after, strict=True)))
        )
    return value


def _same(parts: Sequence[Any], others: Sequence[Any]) -> bool:
    return all(one is other for one, other in zip(parts, others, strict=True))


def _rebuilt(like: Any, parts: Sequence[Any]) -> Any:
    return type(like)(*parts) if hasattr(like, "_fields") else type(like)(parts)


def hinted(value: Any) -> Any:
    """Return a record with the numbers of the call that is planned.

    Example:
        >>> from cklang.exporting.traced import Trace, hinted
        >>> hinted((3, Trace().variable("M", 70, (1, 99))))
        (3, 70)
    """
    return mapped(value, lambda number: number.hint)
