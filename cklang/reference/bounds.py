# SPDX-License-Identifier: MIT
"""Evaluate a function together with how far a right kernel may be from it: the only tolerances.

Every number travels with an absolute error bound; every bool with a mask of where it may be
either. One mechanism serves all ops: the op's own NumPy meaning is evaluated at the ends (and,
for one operand, the middles) of its operands' error intervals, and the largest deviation is the
error passed on. To that an op adds its own rounding: ``ulps`` of the op table times u = 2**-24
times the scale of the op's formula. A cast is monotone and adds nothing else: its interval's ends,
rounded, are exactly what a kernel may give, so a result rounds the same way or to a neighbour.

**Sums.** A kernel may add in any order, in blocks, in trees, with fused or separate products and
inside a matrix unit. Each product passes at most K additions, each at most 2u of the sum of
magnitudes off: CDNA3's units truncate (published bit-accurate models, arXiv 2511.10909: products
are aligned and cut at 24 fractional bits, C is added with truncation), which is twice as far as
rounding to nearest. So |error| <= gamma(K) * sum |a||b| with gamma(K) = (2 K + 8) u for every
order, the 8 for the final rounding and the second stage of the cut. Nothing is assumed about the
order, so the bound stands for every tile, split and numerics mode of the emulator.

**Scaled sums.** Each block of K is such a sum of its own; its error is multiplied by the scales,
whose product and whose application round once each, and the blocks are added in any order: gamma of
K and four times the number of blocks, times the sum of scales times magnitudes, is as far as that
may be off. The f32 product of two f32 scales may overflow where the whole does not; scales of e8m0
are exponents, and their product does not round. Workgroups that share a block each scale their own
sums of it: an infinite scale gives one result only where all products of the block are surely of
one sign, or all 0, since a workgroup whose products are 0 adds nan.

**Small numbers.** CDNA2's matrix units flush subnormal inputs and hardware's functions flush
subnormals: an operand that is subnormal in its type counts as uncertain down to zero there.

**Infinities and nan** must be met in kind, unless the bound is infinite: where an error interval
reaches past the largest f32, or a partial sum may.

:mod:`.op_bounds` and :mod:`.attention` have the rule of each op; :data:`BOUNDS` has them all.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from cklang.ir.attention_gradients import GRADIENTS
from cklang.ir.nodes import Function, Operation
from cklang.ir.numeric import Array
from cklang.reference.attention import attended
from cklang.reference.attention_gradient_ops import gradient_attended
from cklang.reference.evaluate import bind, from_wide
from cklang.reference.op_bounds import OP_BOUNDS, BoundRule, run_operations
from cklang.reference.sums import Known, finite
from cklang.types import Dim

BOUNDS: Mapping[str, BoundRule] = MappingProxyType(
    {
        **OP_BOUNDS,
        **dict.fromkeys(("attention", "attention_lse"), attended),
        **dict.fromkeys(GRADIENTS, gradient_attended),
    }
)
"""The bound rule of each op of the op table, by its name."""


def evaluate_with_bound(
    function: Function, arrays: Sequence[Any]
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Return the results of ``function`` and, for each, the absolute error a kernel may have.

    Args:
        function: A verified function.
        arrays: One array for each parameter, as for :func:`cklang.reference.evaluate.evaluate`.

    Returns:
        The results in their dtypes, and float64 bounds of the same shapes: infinite where
        anything is right (and where a bool may be either).
    """
    bound = bind(function, arrays)
    known = {name: Known.exact(array) for name, array in bound.values.items()}
    with np.errstate(all="ignore"):
        run_body(function, known, bound.dims)
    results = [(value, known[value.name]) for value in function.results]
    values = tuple(from_wide(value, wide.value) for value, wide in results)
    bounds = tuple(
        _bound(wide, rounded) for (_, wide), rounded in zip(results, values, strict=True)
    )
    return values, bounds


def run_body(
    function: Function,
    known: dict[str, Known],
    dims: dict[Dim, int],
    before: Operation | None = None,
) -> None:
    """Add to ``known`` the values that a function makes, or those made before an operation."""
    end = len(function.body) if before is None else function.body.index(before)
    run_operations(function.body[:end], known, dims, BOUNDS)


def _bound(known: Known, rounded: Array) -> Array:
    """Return the bound around ``rounded``, the value of ``known`` in the dtype of the result."""
    if known.is_bool:
        return np.where(known.error, np.inf, 0.0)
    with np.errstate(all="ignore"):
        moved = np.abs(rounded.astype(np.float64) - known.value)
    return known.error + finite(moved)
