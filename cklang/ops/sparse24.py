# SPDX-License-Identifier: MIT
"""Matrices in 2:4 form: of every four numbers along an axis two at most are not zero.

What ``ck.gemm(a, b, sparse="a")`` takes as a. Its kernels do not ask whether a is in this form:
of a four with more, the first two that are not zero count. :func:`check` asks on the host.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cklang.device import arrays
from cklang.errors import error

__all__ = ["check", "prune"]


def check(a: Any, axis: int = -1, name: str = "a") -> None:
    """Check that ``a`` is in 2:4 form along ``axis``.

    Fours are counted from the start of the axis; what is left over at its end is one of them.

    Args:
        a: A host array or tensor of a dtype of the language, with one axis or more.
        axis: The axis that the product sums over: the last one of a.
        name: How messages call it.

    Example:
        >>> ck.sparse24.check(np.array([[3, 0, 0, 5]]))
        >>> try:
        ...     ck.sparse24.check(np.array([[3, 1, -2, 5]]))
        ... except ck.CkError as mistake:
        ...     print(mistake.code)
        A050

    Raises:
        CkValueError: A050, the first four with three numbers or more that are not zero.
    """
    fours = _fours(arrays.to_numpy(name, a), axis)
    count = (fours != 0).sum(axis=-1)
    if not (count > 2).any():
        return
    *place, four = np.argwhere(count > 2)[0].tolist()
    raise error("A050", name=name, axis=axis, place=place, four=four)


def prune(a: Any, axis: int = -1) -> NDArray[Any]:
    """Return a copy of ``a`` in 2:4 form: of every four the two of largest magnitude are kept.

    Of equal magnitudes the first is kept, and nan before every number.

    Args:
        a: A host array or tensor of a dtype of the language, with one axis or more.
        axis: The axis that the product sums over.

    Example:
        >>> ck.sparse24.prune(np.array([[3, 1, -2, 5]]))
        array([[3, 0, 0, 5]])

    Raises:
        CkTypeError, CkValueError: A rows, ``a`` is no such array.
    """
    dense = arrays.to_numpy("a", a)
    fours = _fours(dense, axis)
    size = np.abs(fours.astype(np.float64))
    order = np.argsort(-np.where(np.isnan(size), np.inf, size), axis=-1, kind="stable")
    kept = np.zeros(fours.shape, bool)
    np.put_along_axis(kept, order[..., :2], True, axis=-1)
    moved = np.where(kept, fours, 0).astype(dense.dtype).reshape(*fours.shape[:-2], -1)
    return np.moveaxis(moved[..., : dense.shape[axis]], -1, axis)


def _fours(a: NDArray[Any], axis: int) -> NDArray[Any]:
    """Return ``a`` with ``axis`` last and cut into fours, zeros behind its end."""
    moved = np.moveaxis(a, axis, -1)
    pad = [(0, 0)] * (moved.ndim - 1) + [(0, -moved.shape[-1] % 4)]
    padded = np.pad(moved, pad)
    return padded.reshape(*moved.shape[:-1], padded.shape[-1] // 4, 4)
