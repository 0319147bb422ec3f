# SPDX-License-Identifier: MIT
"""The bound rules of ``scatter`` and ``scatter_add``.

Written rows have their own errors. A sum of n rows and of what was there before is computed in
f32: with u = 2**-24 its error is at most n u / (1 - n u) times the sum of magnitudes, in whatever
order. Sums of i32 are exact, since they wrap.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from cklang.ir.nodes import Operation
from cklang.ir.numeric import Array
from cklang.ir.scatter import SCATTER, SCATTER_ADD
from cklang.reference.evaluate import F32_OVERFLOW, apply
from cklang.reference.sums import UNIT, Known, finite
from cklang.types import Dim, i32


def _written(operation: Operation, operands: Sequence[Known], dims: dict[Dim, int]) -> Known:
    """Return written rows with their errors; an uncertain index may write anything anywhere."""
    indices, *tensors = operands
    value = apply(operation, [indices.value, *(tensor.value for tensor in tensors)], dims)
    errors = [indices.value, *(tensor.error.astype(np.float64) for tensor in tensors)]
    return Known(value=value, error=_unless_sure(apply(operation, errors, dims), indices))


def _added(operation: Operation, operands: Sequence[Known], dims: dict[Dim, int]) -> Known:
    """Return sums of rows with their errors."""
    indices, *terms = operands
    at = indices.value

    def sums(arrays: Sequence[Array]) -> Array:
        return apply(operation, [at, *arrays], dims)

    value = sums([term.value for term in terms])
    passed = sums([finite(term.error) for term in terms])
    size = sums([np.abs(finite(term.value.astype(np.float64))) for term in terms])
    unknown = sums([np.isinf(term.error).astype(np.float64) for term in terms]) > 0
    if operation.result.type.dtype == i32:
        return Known(value=value, error=_unless_sure(np.where(unknown, np.inf, passed), indices))
    count = sums([np.ones_like(term.value, np.float64) for term in terms])
    roundings = count * UNIT
    error = passed + (size + passed) * roundings / (1 - roundings)
    # A partial sum may leave the range of f32.
    wild = (size + error >= F32_OVERFLOW) & ~np.isnan(value)
    error = np.where(np.isfinite(value), error, 0.0)
    error = np.where(wild | unknown, np.inf, error)
    return Known(value=value, error=_unless_sure(error, indices))


def _unless_sure(error: Array, indices: Known) -> Array:
    return np.full_like(error, np.inf) if indices.error.any() else error


SCATTER_BOUNDS: Mapping[str, Callable[[Operation, Sequence[Known], dict[Dim, int]], Known]] = (
    MappingProxyType({SCATTER: _written, SCATTER_ADD: _added})
)
"""The bound rule of each op that writes at indices."""
