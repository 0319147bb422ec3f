# SPDX-License-Identifier: MIT
"""One call of an aten op, as emissions get it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from cklang.torch.backend.emitter import Emitter, Tensor
from cklang.torch.backend.extents import Shape, shape_of


@dataclass(frozen=True, slots=True)
class Call:
    """Where a call is emitted, and the tensors that torch says it returns."""

    emitter: Emitter
    outputs: tuple[Any, ...]
    """Fake tensors; None for a result that the op does not have."""

    @property
    def shape(self) -> Shape:
        """The shape of the first result."""
        return shape_of(self.outputs[0])

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the first result."""
        dtype: torch.dtype = self.outputs[0].dtype
        return dtype

    def rounded(self, tensor: Tensor, place: int = 0) -> Tensor:
        """Return a computed tensor in the dtype of a result."""
        return self.emitter.result(tensor, self.outputs[place].dtype)


Results: TypeAlias = Tensor | Sequence[Tensor | None]
"""What an emission returns: the result, or all results of an op that has several."""

Emission: TypeAlias = Callable[..., Results]
"""Appends one call: it takes the :class:`Call`, then the arguments as the op's schema has them."""
