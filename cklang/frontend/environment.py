# SPDX-License-Identifier: MIT
"""What the dims and dtype variables of a function are: in an op that another calls, those of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from cklang.types import Blocks, Dim, DType, Extent, Formula, Quotient, plain_dims


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The dims and dtype variables that a function's text may name."""

    dtypes: Mapping[str, DType]
    """What each dtype variable is, by name."""
    dims: Mapping[Dim, Extent] | None = None
    """What each dim is in the function being built; None: itself, in the op that is built."""

    def extent(self, extent: Extent) -> Extent | None:
        """Return an extent of the text in dims of the function being built.

        None if it has a dim that no parameter has.
        """
        if self.dims is None or isinstance(extent, int):
            return extent
        if plain_dims(extent) <= self.dims.keys():
            return substituted(extent, self.dims)
        return None


def substituted(extent: Extent, dims: Mapping[Dim, Extent]) -> Extent:
    """Return an extent with some of its dims replaced.

    Example:
        >>> N, K = ck.dims("N K")
        >>> substituted(N * K + 1, {N: 3}), substituted(K // 2, {K: 9})
        (3*K + 1, 4)
    """
    match extent:
        case Formula():
            total: Extent = 0
            for factors, count in extent.terms:
                term: Extent = count
                for factor in factors:
                    term = term * substituted(factor, dims)
                total = total + term
            return total
        case Quotient():
            return substituted(extent.of, dims) // substituted(extent.size, dims)
        case Blocks():
            of = substituted(extent.of, dims)
            return of / extent.size if type(of) is Dim else (of + extent.size - 1) // extent.size
        case Dim():
            return dims.get(extent, extent)
    return extent
