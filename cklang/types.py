# SPDX-License-Identifier: MIT
"""The types of the language: dtypes, dims, tensor types, and the annotations made of them.

Example:
    >>> for dtype in (ck.f32, ck.f16, ck.bf16, ck.fp8, ck.bf8, ck.fp8_fnuz, ck.bf8_fnuz):
    ...     print(f"{dtype!r:12} {dtype.bits} bits, in NumPy {dtype.numpy}")
    ck.f32       32 bits, in NumPy float32
    ck.f16       16 bits, in NumPy float16
    ck.bf16      16 bits, in NumPy bfloat16
    ck.fp8       8 bits, in NumPy float8_e4m3fn
    ck.bf8       8 bits, in NumPy float8_e5m2
    ck.fp8_fnuz  8 bits, in NumPy float8_e4m3fnuz
    ck.bf8_fnuz  8 bits, in NumPy float8_e5m2fnuz
    >>> [dtype.bits for dtype in (ck.fp4, ck.e8m0, ck.i4, ck.i8, ck.i32, ck.i64, ck.bool_)]
    [4, 8, 4, 8, 32, 64, 8]
    >>> print(ck.f16["M", "K"], ck.const[float])
    f16[M, K] const[float]
"""

from __future__ import annotations

import ast
import itertools
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeGuard

from cklang.errors import error
from cklang.forks import cached_property
from cklang.optional_type import AllowsNone

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy as np


class Kind(Enum):
    """What numbers a dtype holds."""

    FLOAT = "float"
    INT = "int"
    BOOL = "bool"


@dataclass(frozen=True)
class DType(AllowsNone):
    """An element type.

    ``name`` is its spelling in Python, in the IR and in keys; ``ck`` its CK Tile C++ spelling;
    ``c`` its spelling in the plain C of a fill. Indexing makes an annotation: ``f16[M, K]``.
    """

    name: str
    kind: Kind
    bits: int
    ck: str
    c: str
    numpy_name: str
    encoding: str = ""
    """For 8-bit floats: ``ocp``, or ``fnuz`` (no infinity, no negative zero, one binade lower)."""

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"ck.{self.name}"

    def __getitem__(self, shape: object) -> TensorType:
        return TensorType(dtype=self, shape=_shape(shape))

    @property
    def bytes(self) -> int:
        """Size of one element in bytes; of a packed one that of the byte which two share."""
        return max(1, self.bits // 8)

    @property
    def packed(self) -> bool:
        """Whether two elements share a byte."""
        return self.bits < 8

    @property
    def family(self) -> str:
        """What matrix instructions call it, which is the same for both 8-bit encodings."""
        return self.name.removesuffix("_fnuz")

    @property
    def is_extended(self) -> bool:
        """Whether NumPy has it from the package ml_dtypes."""
        return self.numpy_name.startswith(("bfloat", "float8", "float4", "int4"))

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype that holds it (from ml_dtypes where NumPy has none)."""
        import numpy as np

        if self.is_extended:
            import ml_dtypes

            extended: np.dtype[Any] = np.dtype(getattr(ml_dtypes, self.numpy_name))
            return extended
        return np.dtype(self.numpy_name)


f16 = DType("f16", Kind.FLOAT, 16, "ck_tile::half_t", "_Float16", "float16")
bf16 = DType("bf16", Kind.FLOAT, 16, "ck_tile::bf16_t", "__bf16", "bfloat16")
f32 = DType("f32", Kind.FLOAT, 32, "float", "float", "float32")
f64 = DType("f64", Kind.FLOAT, 64, "double", "double", "float64")
fp4 = DType("fp4", Kind.FLOAT, 4, "ck_tile::pk_fp4_t", "unsigned char", "float4_e2m1fn")
i4 = DType("i4", Kind.INT, 4, "ck_tile::pk_int4_t", "signed char", "int4")
i8 = DType("i8", Kind.INT, 8, "ck_tile::int8_t", "signed char", "int8")
i32 = DType("i32", Kind.INT, 32, "int32_t", "int", "int32")
i64 = DType("i64", Kind.INT, 64, "int64_t", "long", "int64")
bool_ = DType("bool", Kind.BOOL, 8, "bool", "_Bool", "bool")

_FP8, _BF8 = ("ck_tile::fp8_t", "unsigned char"), ("ck_tile::bf8_t", "unsigned char")
fp8 = DType("fp8", Kind.FLOAT, 8, *_FP8, "float8_e4m3fn", "ocp")
bf8 = DType("bf8", Kind.FLOAT, 8, *_BF8, "float8_e5m2", "ocp")
fp8_fnuz = DType("fp8_fnuz", Kind.FLOAT, 8, *_FP8, "float8_e4m3fnuz", "fnuz")
bf8_fnuz = DType("bf8_fnuz", Kind.FLOAT, 8, *_BF8, "float8_e5m2fnuz", "fnuz")

# The scale of a block of an MX format: the power of two 2**(byte - 127), or nan for 255.
e8m0 = DType("e8m0", Kind.FLOAT, 8, "ck_tile::e8m0_t", "unsigned char", "float8_e8m0fnu")

DTYPES: dict[str, DType] = {
    d.name: d
    for d in (f16, bf16, f32, f64, fp8, bf8, fp8_fnuz, bf8_fnuz, fp4, i4, i8, i32, i64, bool_, e8m0)
}
"""All dtypes by name."""


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
        return _combined(self, other, lambda a, b: _sum(a, b, 1))

    def __sub__(self, other: object) -> Any:
        return _combined(self, other, lambda a, b: _sum(a, b, -1))

    def __rsub__(self, other: object) -> Any:
        return _combined(self, other, lambda a, b: _sum(b, a, -1))

    def __mul__(self, other: object) -> Any:
        return _combined(self, other, _product)

    def __floordiv__(self, other: object) -> Any:
        if not _is_extent(other) or isinstance(other, Dim) or other < 1:
            return NotImplemented
        return _quotient(self, other)

    def __neg__(self) -> Any:
        return self * -1

    __radd__, __rmul__ = __add__, __mul__

    if TYPE_CHECKING:
        # Of these a program makes numbers; plain Python has none.
        def _number(self, other: object) -> Any: ...

        __rfloordiv__ = __mod__ = __rmod__ = __rtruediv__ = _number
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
    """The integer at or below an extent over a number: ``K//2``."""

    of: Dim
    size: int

    def __post_init__(self) -> None:
        """Take any name: it is the quotient's text."""

    def __truediv__(self, size: object) -> Any:
        return _covered(self, size)


def _covered(extent: Dim, size: object) -> Any:
    """Return how many blocks of ``size`` cover an extent that is computed."""
    if not _is_extent(size) or isinstance(size, Dim):
        return NotImplemented
    return (extent + (size - 1)) // size


def _is_extent(item: object) -> TypeGuard[Extent]:
    return isinstance(item, Dim | int) and not isinstance(item, bool)


def _combined(one: Dim, other: object, function: Callable[[_Terms, _Terms], _Terms]) -> Any:
    if not _is_extent(other):
        return NotImplemented
    return _simplest(function(_terms(one), _terms(other)))


_Terms = dict[Monomial, int]


def _terms(extent: Extent) -> _Terms:
    if isinstance(extent, Formula):
        return dict(extent.terms)
    return {(extent,): 1} if isinstance(extent, Dim) else {(): extent}


def _sum(one: _Terms, other: _Terms, sign: int) -> _Terms:
    return {each: one.get(each, 0) + sign * other.get(each, 0) for each in {**one, **other}}


def _product(one: _Terms, other: _Terms) -> _Terms:
    product: _Terms = {}
    for (a, x), (b, y) in itertools.product(one.items(), other.items()):
        factors = tuple(sorted((*a, *b), key=str))
        product[factors] = product.get(factors, 0) + x * y
    return product


def _quotient(extent: Dim, size: int) -> Extent:
    """Return the integer at or below ``extent / size``: what divides evenly is taken out."""
    if size == 1:
        return extent
    terms = _terms(extent)
    even = {each: factor // size for each, factor in terms.items() if not factor % size}
    # A number is taken out but for its remainder, so that (K + 5)//2 is (K + 1)//2 + 2.
    even[()] = terms.get((), 0) // size
    rest = {each: factor for each, factor in terms.items() if factor % size}
    rest[()] = terms.get((), 0) % size
    left = _simplest(rest)
    if isinstance(left, int):
        return _simplest(even)
    if isinstance(left, Quotient):
        return _simplest(_sum(even, _terms(_quotient(left.of, left.size * size)), 1))
    text = f"({left})" if isinstance(left, Formula | Blocks) else str(left)
    quotient = Quotient(name=f"{text}//{size}", of=left, size=size)
    return _simplest(_sum(even, _terms(quotient), 1))


def _simplest(terms: _Terms) -> Extent:
    """Return a sum of products as a number or a dim if it is one."""
    left = {each: factor for each, factor in terms.items() if factor}
    if not left.keys() - {()}:
        return left.get((), 0)
    if list(left.values()) == [1] and [len(each) for each in left] == [1]:
        return next(iter(left))[0]
    # Numbers stand last, and what is subtracted after what is added.
    order = sorted(left, key=lambda each: (left[each] < 0, not each, [str(dim) for dim in each]))
    text = "".join(_signed(each, left[each], place) for place, each in enumerate(order))
    return Formula(name=text, terms=tuple((each, left[each]) for each in order))


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

    Raises:
        ValueError: The text is no extent.
    """
    try:
        extent = _of_node(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, TypeError) as problem:
        raise ValueError(f"{text!r} is no extent: {problem}") from None
    if not _is_extent(extent):
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

    Raises:
        KeyError: ``dims`` lacks the name of a dim.
    """
    if isinstance(extent, int):
        return extent
    if extent.name in dims:
        return dims[extent.name]
    match extent:
        case Formula():
            return sum(
                factor * math.prod(extent_value(each, dims) for each in factors)
                for factors, factor in extent.terms
            )
        case Quotient():
            return extent_value(extent.of, dims) // extent.size
        case Blocks():
            return extent.count(dims[extent.of.name])
    return dims[extent.name]


def extent_over(total: Extent, part: Extent) -> Extent | None:
    """Return ``total / part`` where that is an extent: ``B*S*K`` over ``B*S`` is ``K``.

    Over a number it is the quotient, ``K//2``, which a call must make exact. None if there is none.
    """
    if isinstance(part, int):
        return None if part < 1 else total // part
    factors = _terms(part)
    if len(factors) != 1:
        return 1 if total == part else None
    ((monomial, count),) = factors.items()
    left: _Terms = {}
    for each, factor in _terms(total).items():
        rest = list(each)
        for dim in monomial:
            if dim not in rest:
                return None
            rest.remove(dim)
        left[tuple(rest)] = factor
    return extent_over(_simplest(left), count)


def plain_dims(extent: Extent) -> frozenset[Dim]:
    """Return the dims that decide an extent: K and S of ``K//2*S + 1``."""
    match extent:
        case Formula():
            return frozenset[Dim]().union(
                *(plain_dims(dim) for factors, _ in extent.terms for dim in factors)
            )
        case Quotient() | Blocks():
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
    """Return the extents of a shape; ``dims`` has the extent of each dim by its name.

    Raises:
        KeyError: ``dims`` lacks the name of a dim of the shape.
    """
    return tuple(extent_value(extent, dims) for extent in shape)


def by_name(dims: Mapping[Dim, int]) -> dict[str, int]:
    """Return the extents of dims by their names, as `extents_of` takes them."""
    return {dim.name: extent for dim, extent in dims.items()}


def _shape(shape: object) -> tuple[Dim | int, ...]:
    items = shape if isinstance(shape, tuple) else (shape,)
    return tuple(_extent(item) for item in items)


def _extent(item: object) -> Dim | int:
    if isinstance(item, Dim):
        return item
    if isinstance(item, int) and not isinstance(item, bool) and item >= 0:
        return item
    if isinstance(item, str):
        return Dim(item)
    raise error("K017", got=item)


@dataclass(frozen=True, slots=True)
class TensorType(AllowsNone):
    """The type of a value: a dtype and a shape of dims and integers; rank 0 is a scalar."""

    dtype: DType
    shape: tuple[Dim | int, ...] = ()

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(str(extent) for extent in self.shape)}]"

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def extents(self, dims: Mapping[str, int]) -> tuple[int, ...]:
        """Return the shape in numbers: ``f16[M, 4]`` has the extents (3, 4) where M is 3.

        Raises:
            KeyError: ``dims`` lacks the name of a dim of the shape.
        """
        return extents_of(self.shape, dims)

    def bytes(self, dims: Mapping[str, int]) -> int:
        """Return the bytes of all elements, packed: 24 for ``f16[M, 4]`` where M is 3.

        Raises:
            KeyError: As :meth:`extents`.
        """
        return math.prod(self.extents(dims)) * self.dtype.bytes


@dataclass(frozen=True, slots=True)
class DTypeVar(AllowsNone):
    """A dtype chosen at the call: ``T = ck.dtype_var("T", ck.f16, ck.bf16)``, then ``T[M, K]``."""

    name: str
    choices: tuple[DType, ...]

    def __getitem__(self, shape: object) -> TensorVarType:
        return TensorVarType(var=self, shape=_shape(shape))

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class TensorVarType(AllowsNone):
    """A tensor annotation whose dtype is a variable."""

    var: DTypeVar
    shape: tuple[Dim | int, ...]

    def __str__(self) -> str:
        return f"{self.var}[{', '.join(str(extent) for extent in self.shape)}]"


def dtype_var(name: str, *choices: DType) -> DTypeVar:
    """Make a dtype variable; without ``choices`` it may be any of f16, bf16, f32.

    Example:
        >>> M, K = ck.dims("M K")
        >>> T = ck.dtype_var("T", ck.f16, ck.bf16)
        >>> print(T[M, K], T.choices)
        T[M, K] (ck.f16, ck.bf16)
    """
    return DTypeVar(name, choices or (f16, bf16, f32))


@dataclass(frozen=True, slots=True)
class ConstType:
    """The annotation of a compile-time constant: ``cap: ck.const[float]``."""

    python: type

    def __str__(self) -> str:
        return f"const[{self.python.__name__}]"


class Const:
    """``ck.const[T]``: a parameter whose Python value is compiled into the kernel."""

    _legal = (bool, int, float, str)

    def __getitem__(self, python: object) -> ConstType:
        if not isinstance(python, type) or python not in self._legal:
            raise error("K018", got=python, known=", ".join(t.__name__ for t in self._legal))
        return ConstType(python)


const = Const()
