# SPDX-License-Identifier: MIT
"""The functions of the language on NumPy arrays, outside any program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cklang.errors import error
from cklang.frontend.functions import GEMMS, Form, Intrinsic
from cklang.frontend.scaled import read_blocks
from cklang.ir import rules
from cklang.ir.numeric import Array
from cklang.ir.ops import OPS
from cklang.types import DType

__all__ = ["compute"]


def compute(function: Intrinsic, arguments: Mapping[str, Any]) -> Array:
    """Return ``function`` of NumPy arrays or numbers.

    16-bit floats are widened to float32 first, as in a kernel; float64 stays float64. A cast
    returns the NumPy dtype of its dtype.
    """
    values = list(arguments.values())
    with np.errstate(all="ignore"):
        if function.form is Form.CAST:
            return _cast(values[0], values[1])
        if function.form is Form.CLAMP:
            x, lo, hi = (_array(value) for value in values)
            return np.asarray(np.minimum(np.maximum(x, lo), hi))
        if function.form is Form.EINSUM:
            subscripts, a, b = values
            return np.asarray(np.einsum(subscripts, _array(a), _array(b)))
        if function.form is Form.GEMM:
            return _gemm(**arguments)
        op = OPS[function.name]
        operands = [_array(value) for value in values[: function.operands]]
        if op.dtype is rules.FLOAT_DTYPE:
            # A number may be written as an integer; the op's meaning is of floats.
            operands = [x.astype(np.float64) if x.dtype.kind in "iu" else x for x in operands]
        attributes = {name: arguments[name] for name in function.attributes}
        return op.numpy(*operands, **attributes)


def _gemm(
    a: Any, b: Any, sparse: object, scale_a: Any, scale_b: Any, block_a: Any, block_b: Any
) -> Array:
    left, right = _array(a), _array(b)
    if not isinstance(sparse, str) or sparse not in GEMMS:
        raise error("F059", got=repr(sparse))
    if scale_a is None and scale_b is None and block_a is None and block_b is None:
        return OPS[GEMMS[sparse]].numpy(left, right)
    if sparse:
        raise error("F059", got=f"{sparse!r} beside scales")
    scales = [None if scale is None else _array(scale) for scale in (scale_a, scale_b)]
    blocks = read_blocks(
        (left.shape, right.shape),
        [None if scale is None else scale.shape for scale in scales],
        (block_a, block_b),
        error,
    )
    given = [scale for scale in scales if scale is not None]
    return OPS["scaled_gemm"].numpy(left, right, *given, **blocks)


def _cast(x: Any, dtype: object) -> Array:
    if not isinstance(dtype, DType):
        raise error("F057", what="the dtype of a cast", got=repr(dtype))
    return OPS["cast"].numpy(_array(x), to=dtype).astype(dtype.numpy)


def _array(value: Any) -> Array:
    array = np.asarray(value)
    narrow = array.dtype.kind == "f" and array.dtype.itemsize < 4
    # ml_dtypes' bfloat16 is of NumPy's kind for unknown data.
    return array.astype(np.float32) if narrow or array.dtype.kind == "V" else array
