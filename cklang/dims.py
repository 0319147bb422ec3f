# SPDX-License-Identifier: MIT
"""Extents of tensors: dims, and polynomials and quotients of them."""

from __future__ import annotations

import ast
import itertools
import math
import operator
from collections import Counter
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache, reduce, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeGuard, TypeVar

from cklang.errors import error

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")
P = ParamSpec("P")

_RANKING: ContextVar[bool] = ContextVar("ranking", default=False)


def ranks(function: Callable[P, T]) -> Callable[P, T]:
    """Mark a function that only ranks kernels: in it, extents may be read as floats.

    The time that a kernel takes chooses one; what the kernel is told does not depend on it.
    """

    @wraps(function)
    def ranking(*args: P.args, **kwargs: P.kwargs) -> T:
        token = _RANKING.set(True)
        try:
            return function(*args, **kwargs)
        finally:
            _RANKING.reset(token)

    return ranking


def is_ranking() -> bool:
    """Tell whether kernels are being ranked."""
    return _RANKING.get()


@dataclass(frozen=True, slots=True)
class Dim:
    """A symbolic tensor extent; equal names are equal extents within one op."""

    name: str

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise error("K015", got=self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name

    def __truediv__(self, size: object) -> Blocks:
        return Blocks(name=f"{self.name}/{size}", of=self, size=size)  # type: ignore[arg-type]

    # Sums, differences, products and quotients are extents too; checkers see numbers, since
    # programs compute with what a call gives.
    def __add__(self, other: object) -> Any:
        return _combined(self, other, summed)

    def __sub__(self, other: object) -> Any:
        return _combined(self, other, lambda a, b: summed(a, b, -1))

    def __rsub__(self, other: object) -> Any:
        return _combined(self, other, lambda a, b: summed(b, a, -1))

    def __mul__(self, other: object) -> Any:
        return _combined(self, other, lambda a, b: multiplied(a, b, str))

    def __floordiv__(self, other: object) -> Any:
        return _quotient(self, other)

    def __rfloordiv__(self, other: object) -> Any:
        return _quotient(other, self)

    def __neg__(self) -> Any:
        return self * -1

    __radd__, __rmul__ = __add__, __mul__

    if TYPE_CHECKING:
        # Of these a program makes numbers; plain Python has none.
        def _number(self, other: object) -> Any: ...

        __mod__ = __rmod__ = __rtruediv__ = _number
        __lt__ = __le__ = __gt__ = __ge__ = _number


Extent = Dim | int
"""What a shape has for an axis."""


@dataclass(frozen=True, slots=True)
class Blocks(Dim):
    """The number of blocks of ``size`` that cover the dim ``of``; the last may be short.

    Written ``K / 128``. Its extent is known as soon as that of the dim is.
    """

    of: Dim
    size: int

    def __post_init__(self) -> None:
        if isinstance(self.of, Blocks):
            raise error("K016", got=self.of, dim=self.of.of)
        if not isinstance(self.size, int) or isinstance(self.size, bool) or self.size < 2:
            raise error("K011", name="the size of a block", least=2, got=self.size)

    @classmethod
    def of_dim(cls, dim: Dim, size: int) -> Blocks | None:
        """Return ``dim / size``, or None if there are no such blocks."""
        if isinstance(dim, Blocks) or size < 2:
            return None
        return dim / size

    def count(self, extent: int) -> int:
        """Return its extent where the dim's is ``extent``."""
        return -(-extent // self.size)


Monomial = tuple[Dim, ...]
"""A product of dims and quotients, by name; () is the number 1."""


@dataclass(frozen=True, slots=True, repr=False)
class Formula(Dim):
    """An extent that is computed from dims: ``K - 1``, ``B*S``, ``K - K//2``.

    Sums and products of the same value are the same formula, so formulas compare as extents do.
    """

    terms: tuple[tuple[Monomial, int], ...]
    """The factor of each product of dims."""

    def __post_init__(self) -> None:
        """Take any name: it is the formula's text."""

    def __truediv__(self, size: object) -> Any:
        return _covered(self, size)


@dataclass(frozen=True, slots=True, repr=False)
class Quotient(Dim):
    """The integer at or below an extent over another: ``K//2``, ``E//H``; 0 over 0."""

    of: Extent
    size: Extent

    def __post_init__(self) -> None:
        """Take any name: it is the quotient's text."""

    def __truediv__(self, size: object) -> Any:
        return _covered(self, size)


def _covered(extent: Dim, size: object) -> Any:
    """Return how many blocks of ``size`` cover an extent that is computed."""
    if not is_extent(size) or isinstance(size, Dim):
        return NotImplemented
    return (extent + (size - 1)) // size


def is_integer(item: object) -> TypeGuard[int]:
    """Whether something is an integer, which True and False are not."""
    return isinstance(item, int) and not isinstance(item, bool)


def is_extent(item: object) -> TypeGuard[Extent]:
    """Whether something is an integer or a dim."""
    return isinstance(item, Dim) or is_integer(item)


def require_integer(name: str, value: object, least: int = 1) -> int:
    """Return an integer of ``least`` or more."""
    if not is_integer(value) or value < least:
        raise error("K011", name=name, least=least, got=value)
    return value


def _combined(one: Dim, other: object, function: Callable[[_Terms, _Terms], _Terms]) -> Any:
    if not is_extent(other):
        return NotImplemented
    return _simplest(function(_terms(one), _terms(other)))


_Terms = dict[Monomial, int]


def _terms(extent: Extent) -> _Terms:
    if isinstance(extent, Formula):
        return dict(extent.terms)
    return {(extent,): 1} if isinstance(extent, Dim) else {(): extent}


def summed(one: Mapping[T, int], other: Mapping[T, int], factor: int = 1) -> dict[T, int]:
    """Add a multiple of one polynomial to another: the factor of each product."""
    return {term: one.get(term, 0) + factor * other.get(term, 0) for term in {**one, **other}}


def multiplied(
    one: Mapping[tuple[T, ...], int],
    other: Mapping[tuple[T, ...], int],
    order: Callable[[Any], Any] | None = None,
) -> dict[tuple[T, ...], int]:
    """Multiply two polynomials; ``order`` sorts the factors of a product."""
    terms: dict[tuple[T, ...], int] = {}
    for (a, x), (b, y) in itertools.product(one.items(), other.items()):
        factors = tuple(sorted((*a, *b), key=order))  # type: ignore[type-var,arg-type]
        terms[factors] = terms.get(factors, 0) + x * y
    return terms


def _quotient(extent: object, size: object) -> Any:
    if not is_extent(extent) or not is_extent(size) or (isinstance(size, int) and size < 1):
        return NotImplemented
    return _over(extent, size)


def _over(extent: Extent, size: Extent) -> Extent:
    """Return the integer at or below ``extent / size``: what divides evenly is taken out."""
    if size == 1:
        return extent
    return _over_dims(extent, size) if isinstance(size, Dim) else _over_number(extent, size)


def _over_number(extent: Extent, size: int) -> Extent:
    terms = _terms(extent)
    even = {monomial: factor // size for monomial, factor in terms.items() if not factor % size}
    # A number is taken out but for its remainder, so that (K + 5)//2 is (K + 1)//2 + 2.
    even[()] = terms.get((), 0) // size
    rest = {monomial: factor for monomial, factor in terms.items() if factor % size}
    rest[()] = terms.get((), 0) % size
    left = _simplest(rest)
    if isinstance(left, int):
        return _simplest(even)
    if isinstance(left, Quotient):
        return _simplest(summed(even, _terms(_over(left.of, left.size * size))))
    return _simplest(summed(even, _terms(_named_quotient(left, size))))


def _over_dims(extent: Extent, size: Dim) -> Extent:
    """Return ``extent // size`` without the factors that all products of both share."""
    if extent in (size, 0):
        return int(extent == size)
    if isinstance(extent, Quotient):
        return _over(extent.of, extent.size * size)
    above, below = _terms(extent), _terms(size)
    shared = reduce(operator.and_, map(Counter, (*above, *below)))
    if not shared:
        return _named_quotient(extent, size)
    return _over(_simplest(_divided(above, shared)), _simplest(_divided(below, shared)))


def _divided(terms: _Terms, factors: Counter[Dim]) -> _Terms:
    return {tuple((Counter(dims) - factors).elements()): count for dims, count in terms.items()}


def _named_quotient(of: Extent, size: Extent) -> Quotient:
    above = f"({of})" if isinstance(of, Formula | Blocks) else str(of)
    below = f"({size})" if isinstance(size, Formula | Blocks | Quotient) else str(size)
    return Quotient(name=f"{above}//{below}", of=of, size=size)


def _simplest(terms: _Terms) -> Extent:
    """Return a sum of products as a number or a dim if it is one."""
    left = {monomial: factor for monomial, factor in terms.items() if factor}
    if not left.keys() - {()}:
        return left.get((), 0)
    if list(left.values()) == [1] and [len(monomial) for monomial in left] == [1]:
        return next(iter(left))[0]
    # Numbers stand last, and what is subtracted after what is added.
    order = sorted(
        left,
        key=lambda monomial: (left[monomial] < 0, not monomial, [str(dim) for dim in monomial]),
    )
    text = "".join(_signed(monomial, left[monomial], place) for place, monomial in enumerate(order))
    return Formula(name=text, terms=tuple((monomial, left[monomial]) for monomial in order))


def _signed(factors: Monomial, count: int, place: int) -> str:
    sign = ("-" if count < 0 else "") if not place else " - " if count < 0 else " + "
    # A sign in front binds tighter than what follows: -K//2 would be (-K)//2.
    alone = len(factors) == 1 and abs(count) == 1 and sign != "-"
    words = [str(dim) if alone or type(dim) is Dim else f"({dim})" for dim in factors]
    return sign + "*".join([str(abs(count))] * (abs(count) != 1 or not words) + words)


@lru_cache(4096)
def extent_from_text(text: str) -> Extent:
    """Return the extent that is written so: the inverse of ``str``.

    Example:
        >>> extent_from_text("K - K//2") == ck.dims("K")[0] - ck.dims("K")[0] // 2
        True
    """
    try:
        extent = _of_node(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, TypeError) as problem:
        raise ValueError(f"{text!r} is no extent: {problem}") from None
    if not is_extent(extent):
        raise ValueError(f"{text!r} is no extent")
    return extent


_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
}


def _of_node(node: ast.expr) -> Any:
    match node:
        case ast.Name(id=name):
            return Dim(name)
        case ast.Constant(value=int() as number):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_of_node(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_of_node(left), _of_node(right))
    raise TypeError(f"{ast.unparse(node)} is neither a dim nor a number")


def extent_value(extent: Extent, dims: Mapping[str, int]) -> int:
    """Return an extent as a number; ``dims`` has that of each dim by its name.

    Example:
        >>> extent_value(ck.dims("K")[0] // 2 + 1, {"K": 9})
        5
    """
    if isinstance(extent, int):
        return extent
    if extent.name in dims:
        return dims[extent.name]
    match extent:
        case Formula():
            return sum(
                factor * math.prod(extent_value(dim, dims) for dim in factors)
                for factors, factor in extent.terms
            )
        case Quotient():
            size = extent_value(extent.size, dims)
            return extent_value(extent.of, dims) // size if size else 0
        case Blocks():
            return extent.count(dims[extent.of.name])
    return dims[extent.name]


def extent_over(total: Extent, part: Extent) -> Extent | None:
    """Return ``total // part``, which a call must make exact: ``B*S*K`` over ``B*S`` is ``K``.

    None over a number below 1.
    """
    return None if isinstance(part, int) and part < 1 else _over(total, part)


def plain_dims(extent: Extent) -> frozenset[Dim]:
    """Return the dims that decide an extent: K and S of ``K//2*S + 1``."""
    match extent:
        case Formula():
            return frozenset[Dim]().union(
                *(plain_dims(dim) for factors, _ in extent.terms for dim in factors)
            )
        case Quotient():
            return plain_dims(extent.of) | plain_dims(extent.size)
        case Blocks():
            return plain_dims(extent.of)
        case Dim():
            return frozenset({extent})
    return frozenset()


def dims(names: str) -> tuple[Dim, ...]:
    """Make dims from a space-separated list of names: ``M, N, K = ck.dims("M N K")``.

    Example:
        >>> M, N, K = ck.dims("M N K")
        >>> ck.f16[M, K / 128]
        TensorType(dtype=ck.f16, shape=(M, Blocks(name='K/128', of=K, size=128)))
    """
    return tuple(Dim(name) for name in names.replace(",", " ").split())


def extents_of(shape: Iterable[Dim | int], dims: Mapping[str, int]) -> tuple[int, ...]:
    """Return the extents of a shape; ``dims`` has the extent of each dim by its name."""
    return tuple(extent_value(extent, dims) for extent in shape)


def by_name(dims: Mapping[Dim, int]) -> dict[str, int]:
    """Return the extents of dims by their names, as `extents_of` takes them."""
    return {dim.name: extent for dim, extent in dims.items()}
