# SPDX-License-Identifier: MIT
"""NumPy arrays as the operands of the language's functions outside of programs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cklang.ir.numeric import Array


def as_array(value: Any) -> Array:
    """Return an operand as an array, 16-bit floats widened."""
    array = np.asarray(value)
    narrow = array.dtype.kind == "f" and array.dtype.itemsize < 4
    # ml_dtypes' bfloat16 is of NumPy's kind for unknown data.
    return array.astype(np.float32) if narrow or array.dtype.kind == "V" else array


def as_arrays(values: Sequence[Any]) -> list[Array]:
    """Return operands as arrays; Python's numbers take the dtype of the floats beside them."""
    arrays = [as_array(value) for value in values]
    pairs = list(zip(values, arrays, strict=True))
    floats = [x.dtype for v, x in pairs if not _is_plain_number(v) and x.dtype.kind == "f"]
    if not floats:
        return arrays
    dtype = np.result_type(*floats)
    return [x.astype(dtype) if _is_plain_number(v) else x for v, x in pairs]


def _is_plain_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool | np.generic)


def accumulated(x: Any) -> Array:
    """Return an array in the dtype in which its elements are accumulated."""
    array = np.asarray(x)
    wide = np.int32 if array.dtype.kind in "biu" else np.float32
    return array if array.dtype == np.float64 else array.astype(wide)


def checked_indices(indices: Any, extent: int, axis: int) -> Array:
    """Return indices as an array, all of them in an axis of ``extent``."""
    array = np.asarray(indices)
    if array.dtype.kind not in "iu":
        raise ValueError(f"the indices are {array.dtype}", "legal: integers")
    outside = array[(array < 0) | (array >= extent)]
    if outside.size:
        raise ValueError(
            f"the index {outside[0]} is outside of axis {axis}", f"legal: 0 to {extent - 1}"
        )
    return array
