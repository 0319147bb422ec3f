# SPDX-License-Identifier: MIT
"""``ck.pack``: matrices of 4-bit elements, two in a byte, and batches of them.

NumPy holds an ``ml_dtypes.int4`` or ``float4_e2m1fn`` in a byte of its own, which no kernel reads.
Floats are packed in order along K, low half first. Integers have the order that CK Tile's
conversion of pk_int4_t takes: eight elements e0 ... e7 are four bytes, low half first:
e0 e2 | e4 e6 | e1 e3 | e5 e7, each with 8 added to it.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cklang.device.arrays import HOST, Array, Library
from cklang.errors import error
from cklang.types import DType, fp4, i4
from cklang.widths import packed_row

_ORDERS = {i4: np.array([0, 2, 4, 6, 1, 3, 5, 7]), fp4: np.arange(8)}
"""Which of eight elements stands at each half byte."""
_BIAS = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Packed:
    """Matrices of 4-bit elements, two in a byte: what :func:`pack` returns and ops take.

    Example:
        >>> w = np.arange(64).reshape(1, 64) % 16 - 8
        >>> packed = ck.pack(w)
        >>> packed
        Packed(shape=(1, 64), dtype=ck.i4, axis=1)
        >>> packed.data.nbytes
        32
    """

    data: NDArray[np.uint8] = field(repr=False)
    """[..., bytes]: a row along ``axis`` for each index of the other axes, in their order."""
    shape: tuple[int, ...]
    """As NumPy sees the matrices, in elements."""
    dtype: DType
    axis: int
    """The axis along which two elements share a byte: K of the product."""

    def unpack(self) -> NDArray[Any]:
        """Return the matrices with one element per byte (``ml_dtypes.int4``, ``float4_e2m1fn``).

        Example:
            >>> bool((packed.unpack() == w).all())
            True
        """
        halves = np.stack([self.data & 15, self.data >> 4], axis=-1)
        *before, size = self.data.shape
        eights = halves.reshape(*before, 2 * size // 8, 8)
        ordered = np.empty_like(eights)
        ordered[..., _ORDERS[self.dtype]] = eights
        rows = ordered.reshape(*before, 2 * size)[..., : self.shape[self.axis]]
        if self.dtype == i4:
            numbers = (rows.astype(np.int8) - _BIAS).astype(self.dtype.numpy)
        else:
            numbers = np.ascontiguousarray(rows).view(self.dtype.numpy)
        return np.ascontiguousarray(np.moveaxis(numbers, -1, self.axis))

    def __ck_array__(self, name: str) -> Array:
        """Return what a call reads."""
        shape = (*self.data.shape[:-1], 2 * self.data.shape[-1])
        strides = [math.prod(shape[place + 1 :]) for place in range(len(shape) - 1)]
        strides.insert(self.axis, 1)
        return Array(
            pointer=self.data.ctypes.data,
            dtype=self.dtype,
            shape=self.shape,
            strides=tuple(strides),
            writeable=False,
            place=HOST,
            library=Library.NUMPY,
            owner=self.data,
        )


def pack(w: Any, axis: int = -1) -> Packed:
    """Return matrices of 4-bit floats or of integers from -8 to 7 as a packed array.

    Args:
        w: A host matrix, or a batch of them with further axes in front: of
            ``ml_dtypes.float4_e2m1fn``, which becomes ``ck.fp4``; of ``ml_dtypes.int4`` or any
            integers in that range, which becomes ``ck.i4``.
        axis: The axis that the product sums over: the last one of a ``ck.i4[N, K]``.

    Example:
        >>> w = np.arange(-8, 8).reshape(2, 8)
        >>> ck.pack(w)
        Packed(shape=(2, 8), dtype=ck.i4, axis=1)
        >>> ck.pack(w, axis=0)
        Packed(shape=(2, 8), dtype=ck.i4, axis=0)

    Raises:
        CkTypeError: A054, ``w`` is nothing of the kind.
        CkValueError: A055, an integer is out of range.
    """
    matrices = np.asarray(w)
    dtype = fp4 if matrices.dtype == fp4.numpy else i4
    known = matrices.dtype in (fp4.numpy, i4.numpy) or matrices.dtype.kind in "iu"
    if matrices.ndim < 2 or not known:
        raise error("A054", dtype=matrices.dtype, rank=matrices.ndim)
    codes = _codes(matrices) if dtype == i4 else matrices.view(np.uint8)
    rows = np.moveaxis(codes, axis, -1)
    *before, elements = rows.shape
    room = packed_row(elements)
    filled = np.full((*before, room), _BIAS if dtype == i4 else 0, np.uint8)
    filled[..., :elements] = rows
    halves = filled.reshape(*before, room // 8, 8)[..., _ORDERS[dtype]]
    pairs = halves.reshape(*before, room // 2, 2)
    data = np.ascontiguousarray(pairs[..., 0] | pairs[..., 1] << 4)
    return Packed(data=data, shape=matrices.shape, dtype=dtype, axis=axis % matrices.ndim)


def _codes(matrices: NDArray[Any]) -> NDArray[np.uint8]:
    wide = matrices.astype(np.int64)
    if wide.size and not -8 <= wide.min() <= wide.max() <= 7:
        raise error("A055", low=wide.min(), high=wide.max())
    return (wide + _BIAS).astype(np.uint8)
