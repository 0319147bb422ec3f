# SPDX-License-Identifier: MIT
"""Dims for extents that only a call decides, and how they get the names that the user gave them.

The output of a convolution has extents that follow from others. Each gets a dim of its own, the
same for the same window over the same extents. Where it meets a dim of the user, it is that one:
reading the program starts again with what was learned. Whether the numbers agree is checked at the
call (:mod:`cklang.ir.derive`).
"""

import operator
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

from cklang.dims import is_integer
from cklang.types import Dim, Formula, Quotient

Extent = Dim | int


class LearnedError(Exception):
    """A derived dim is known by another name: the program is read again with it."""

    def __init__(self, dim: Dim, extent: Extent) -> None:
        super().__init__(f"{dim} is {extent}")
        self.dim = dim
        self.extent = extent


def _may_be_none(difference: Extent) -> bool:
    """Tell whether a difference of extents may be 0 where no extent is."""
    if not isinstance(difference, Formula):
        return difference == 0
    return len({count > 0 for _, count in difference.terms}) > 1


class Derived:
    """The derived dims of one reading of a program."""

    def __init__(
        self,
        learned: Mapping[Dim, Extent],
        taken: Collection[str],
        numbers: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Begin with what earlier readings learned; names in ``taken`` are the user's.

        Args:
            learned: Derived dims that are other extents.
            taken: Names that dims have.
            numbers: What is known of the dims of parameters, by name.
        """
        self.learned = learned
        self.pinned: set[str] = set()
        """The dims whose numbers the program was read with: it is for these numbers alone."""
        self._numbers = numbers
        self._taken = set(taken)
        self._dims: dict[object, Dim] = {}
        self._fits: dict[Dim, Callable[[Extent], bool]] = {}

    def dim(self, name: str, key: object, fits: Callable[[Extent], bool]) -> Extent:
        """Return the dim of an extent.

        Equal keys are equal extents; ``fits`` tells whether another extent may be the same one.
        """
        if key not in self._dims:
            new = Dim(self._free(name))
            self._taken.add(new.name)
            self._dims[key] = new
            self._fits[new] = fits
        return self.resolve(self._dims[key])

    def extent(self, extent: Extent) -> Extent:
        """Return an extent that is computed from dims as what it is known to be by now.

        It may be any other that is not another number in every call: the call checks which. One
        of an annotation stays what it is.
        """
        is_own = isinstance(extent, Formula | Quotient) and extent.name not in self._taken
        if isinstance(extent, Dim) and is_own and extent not in self.learned:
            own = extent
            self._fits[own] = lambda other: _may_be_none(own - other)
        return self.resolve(extent)

    def resolve(self, extent: Extent) -> Extent:
        """Return what ``extent`` is known to be by now."""
        while isinstance(extent, Dim) and extent in self.learned:
            extent = self.learned[extent]
        return extent

    def number(self, extent: object) -> int | None:
        """Return an extent as a number, which the program then depends on; None if unknown."""
        if isinstance(extent, Dim):
            extent = self.resolve(extent)
        if not isinstance(extent, Dim):
            return extent if is_integer(extent) else None
        if extent.name not in self._numbers:
            return None
        self.pinned.add(extent.name)
        return operator.index(self._numbers[extent.name])

    def same(self, one: Extent, other: Extent) -> bool:
        """Tell whether two extents are the same."""
        if one == other:
            return True
        for dim, extent in ((one, other), (other, one)):
            if isinstance(dim, Dim) and dim in self._fits and self._fits[dim](extent):
                raise LearnedError(dim, extent)
        return False

    def _free(self, name: str) -> str:
        count = 0
        while f"{name}_{count}" in self._taken:
            count += 1
        return f"{name}_{count}"
