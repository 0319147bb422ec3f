# SPDX-License-Identifier: MIT
"""An argument without elements: dtype, shape and strides alone."""

from dataclasses import dataclass

from cklang.device.arrays import HOST, Array, Library
from cklang.types import DType


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedArray:
    """An array with a dtype, a shape and strides, but no elements."""

    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    pointer: int = 0
    """An address that no other array has, where overlaps matter; nothing is read there."""

    def __ck_array__(self, name: str) -> Array:
        """Return it as an argument that is bound, but never read."""
        del name
        return Array(
            pointer=self.pointer,
            dtype=self.dtype,
            shape=self.shape,
            strides=self.strides,
            writeable=True,
            place=HOST,
            library=Library.NUMPY,
            owner=self,
        )
