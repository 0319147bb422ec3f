# SPDX-License-Identifier: MIT
"""Arrays on which one launch of a kernel is timed by itself and compared with the reference."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from cklang.fusion.plan import AnyKernel
from cklang.types import DType

Array = npt.NDArray[Any]
RandomValues = Callable[[DType, int], Array]
"""Random elements of a dtype, so many of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOperands:
    """Arrays for one launch of a kernel."""

    kernel: AnyKernel
    """What it computes, of these operands."""
    memory: tuple[Array, ...]
    """All arrays, the result among them."""
    order: tuple[int, ...]
    """For each input of the problem: which of ``memory`` it is."""
    inputs: tuple[Array, ...]
    """The value of each of ``kernel.inputs``: views of that memory, or what was packed into it."""
    place: int
    """Which of ``memory`` is the first result."""
    result: Array
    """The first result as ``kernel`` has it."""
    more: tuple[tuple[int, Array], ...] = ()
    """The further results: which of ``memory``, and the result."""

    @property
    def written(self) -> frozenset[int]:
        """Which of ``memory`` a launch writes."""
        return frozenset((self.place, *(place for place, _ in self.more)))

    @property
    def results(self) -> tuple[Array, ...]:
        """All results, as ``kernel`` has them."""
        return (self.result, *(array for _, array in self.more))
