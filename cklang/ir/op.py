# SPDX-License-Identifier: MIT
"""What a row of the op table says.

C expressions: ``{0}``, ``{1}``… are local variables (constants too: a variable each),
``{slope}`` is an attribute as a literal. f32, f16 and bf16 values are ``float`` variables (a narrow
value is a float that the narrow type can hold), i8 and i32 values ``int``, i64 values ``long``,
bool values ``bool``. Beside C's operators they use only the helpers of the headers in ``cklang/``:
``math.h``, ``divide.h`` and ``trig64.h``. An op works on integers when it has a ``c_int``, in which
``{int}``, ``{unsigned}``, ``{bits}`` and ``{last}`` say the width; ``c_i64`` replaces it for i64.
Integer arithmetic wraps, as NumPy's does.

NumPy meanings take arrays (float64 or float32 for f32 values, int64 for integers, bool) and
the attributes by name; who calls them wraps their i32 results. Float attributes are f32 numbers:
0.1 means the f32 nearest to 0.1.

``ulps`` says how far the f32 code of a kernel may be from the exact function: ``ulps`` times
2**-24 times ``scale(operands…, attributes…)``, which is the result's magnitude unless the row
says otherwise because the usual formula cancels on the way. 0 is exact, and so is every result
whose magnitude is less than ``exact_below``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from cklang.errors import CkError
from cklang.ir import rules
from cklang.ir.nodes import Attr
from cklang.ir.numeric import Array
from cklang.ir.rules import AttrKind, DTypeRule, ShapeRule
from cklang.source import Span
from cklang.types import TensorType


class Kind(Enum):
    """What an op is to fusion."""

    ANCHOR = "anchor"
    ATTENTION = "attention"
    SHAPE = "shape"
    CAST = "cast"
    CONSTANT = "constant"
    POINTWISE = "pointwise"
    READ = "read"
    EXTENT = "extent"
    INDEX = "index"
    GATHER = "gather"
    VIEW = "view"
    JOIN = "join"
    PARTIAL = "partial"
    BLOCK = "block"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttrRow:
    """One attribute: its name, what it holds, and the default of the user's function, if any.

    The IR has no defaults: an operation writes all its attributes.
    """

    name: str
    kind: AttrKind
    default: Attr | None = None


def _nothing_more(
    _types: Sequence[TensorType], _attrs: Mapping[str, Attr], _at: Span | None
) -> Iterator[CkError]:
    yield from ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One row.

    ``check`` yields what is wrong with a use beyond what the rules of dtype and shape say.
    """

    name: str
    operands: int
    optional: int = 0
    """How many operands more it may have."""
    kind: Kind
    doc: str
    numpy: Callable[..., Array]
    attrs: tuple[AttrRow, ...] = ()
    shape: ShapeRule = rules.SAME_SHAPE
    dtype: DTypeRule = rules.FLOAT_DTYPE
    c: str | None = None
    c_int: str | None = None
    c_i64: str | None = None
    ulps: float = 0.0
    scale: Callable[..., Array] | None = None
    exact_below: float = 0.0
    commutative: bool = False
    check: Callable[[Sequence[TensorType], Mapping[str, Attr], Span | None], Iterator[CkError]] = (
        _nothing_more
    )
