# SPDX-License-Identifier: MIT
"""The identity of a kernel that sums along rows, or parts of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from cklang.keys import Key
from cklang.types import DType, f32


@dataclass(frozen=True, slots=True, kw_only=True)
class ReduceSignature:
    """Sums around the gradients of attention, in f32."""

    dot: bool
    """Whether it sums the products of two tensors of ``dtype`` along their rows, or parts of a
    tensor to one of ``dtype``."""
    dtype: DType
    parts: DType = f32
    """What the parts of a sum are."""

    family: ClassVar[str] = "reduce"
    functions: ClassVar[str] = ""

    @property
    def words(self) -> str:
        """What is computed, for messages."""
        return (
            f"products of rows of {self.dtype}" if self.dot else f"a sum of parts to {self.dtype}"
        )

    def label(self, algorithm: None) -> Sequence[str]:
        """Return what the label of a kernel says of it."""
        own = [] if self.parts == f32 else [self.parts.name]
        return [self.family, "dot" if self.dot else "sum", *own, self.dtype.name]


ReduceKey: TypeAlias = Key[ReduceSignature, None]
"""The key of such a kernel: there is one for each signature and GPU."""


def reduce_key(arch: str, dtype: DType, *, dot: bool = False, parts: DType = f32) -> ReduceKey:
    """Return the key of a kernel that sums on a GPU; arguments as the signature's fields."""
    return ReduceKey(ReduceSignature(dot=dot, dtype=dtype, parts=parts), None, arch)
