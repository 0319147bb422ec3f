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

import math
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from cklang.dims import Blocks as Blocks
from cklang.dims import Dim as Dim
from cklang.dims import Extent as Extent
from cklang.dims import Formula as Formula
from cklang.dims import Quotient as Quotient
from cklang.dims import by_name as by_name
from cklang.dims import dims as dims
from cklang.dims import extent_from_text as extent_from_text
from cklang.dims import extent_over as extent_over
from cklang.dims import extent_value as extent_value
from cklang.dims import extents_of as extents_of
from cklang.dims import is_integer
from cklang.dims import plain_dims as plain_dims
from cklang.errors import error
from cklang.forks import cached_property
from cklang.optional_type import AllowsNone

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def dtype_like(dtype: np.dtype[Any]) -> DType | None:
    """Return the dtype that NumPy calls so, if there is one.

    Example:
        >>> import numpy as np
        >>> dtype_like(np.dtype("float16")), dtype_like(np.dtype("complex64"))
        (ck.f16, None)
    """
    return next((known for known in DTYPES.values() if known.numpy == dtype), None)


def _shape(shape: object) -> tuple[Dim | int, ...]:
    items = shape if isinstance(shape, tuple) else (shape,)
    return tuple(_extent(item) for item in items)


def _extent(item: object) -> Dim | int:
    if isinstance(item, Dim):
        return item
    if is_integer(item) and item >= 0:
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
