# SPDX-License-Identifier: MIT
"""How kernels of rows hand over and store what their stencils do not know: i64 and bool.

A stencil takes numbers as words of 32 bits and stores those of a dtype of its own. An i64 is two
words, its low half first, and two outputs of i32, each with every other dword of the tensor. A
bool is stored as an i8.
"""

from cklang.types import DType, bool_, i8, i32, i64

_PARTS = {bool_: (i8,), i64: (i32, i32)}


def parts_of(dtype: DType) -> tuple[DType, ...]:
    """Return the dtypes as which a stencil stores an element of ``dtype``, in memory's order.

    Example:
        >>> parts_of(ck.i64), parts_of(ck.f16)
        ((ck.i32, ck.i32), (ck.f16,))
    """
    return _PARTS.get(dtype, (dtype,))
