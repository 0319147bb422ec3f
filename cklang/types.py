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
    >>> [dtype.bits for dtype in (ck.fp4, ck.e8m0, ck.i4, ck.i8, ck.i32, ck.bool_)]
    [4, 8, 4, 8, 32, 8]
    >>> print(ck.f16["M", "K"], ck.const[float])
    f16[M, K] const[float]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cklang.errors import error

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy as np

__all__ = [
    "DTYPES",
    "Blocks",
    "Const",
    "ConstType",
    "DType",
    "DTypeVar",
    "Dim",
    "Kind",
    "TensorType",
    "TensorVarType",
    "bf8",
    "bf8_fnuz",
    "bf16",
    "bool_",
    "by_name",
    "const",
    "dims",
    "dtype_var",
    "e8m0",
    "extents_of",
    "f16",
    "f32",
    "f64",
    "fp4",
    "fp8",
    "fp8_fnuz",
    "i4",
    "i8",
    "i32",
    "i64",
]


class Kind(Enum):
    """What numbers a dtype holds."""

    FLOAT = "float"
    INT = "int"
    BOOL = "bool"


@dataclass(frozen=True)
class DType:
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
    """Of 8-bit floats: ``ocp``, or ``fnuz`` (no infinity, no negative zero, one binade lower)."""

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

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype that holds it (from ml_dtypes where NumPy has none)."""
        import numpy as np

        if self.numpy_name.startswith(("bfloat", "float8", "float4", "int4")):
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

    if TYPE_CHECKING:
        # Programs compute with the number that a call gives; plain Python has none.
        def _number(self, other: object) -> Any: ...

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _number
        __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __rtruediv__ = _number
        __lt__ = __le__ = __gt__ = __ge__ = _number


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


def dims(names: str) -> tuple[Dim, ...]:
    """Make dims from a blank-separated list of names: ``M, N, K = ck.dims("M N K")``.

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
    return tuple(dims[extent.name] if isinstance(extent, Dim) else extent for extent in shape)


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
class TensorType:
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
class DTypeVar:
    """A dtype chosen at the call: ``T = ck.dtype_var("T", ck.f16, ck.bf16)``, then ``T[M, K]``."""

    name: str
    choices: tuple[DType, ...]

    def __getitem__(self, shape: object) -> TensorVarType:
        return TensorVarType(var=self, shape=_shape(shape))

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class TensorVarType:
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
