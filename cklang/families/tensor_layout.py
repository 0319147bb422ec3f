# SPDX-License-Identifier: MIT
"""How the values of a program lie in memory, as planning sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cklang.device.arrays import Array, alignment_of, packed_strides
from cklang.device.preshuffle import Arrangement
from cklang.errors import error
from cklang.ir.nodes import Value
from cklang.types import DType

__all__ = ["TensorLayout", "packed_strides", "refuse_negative", "refuse_overlap"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorLayout:
    """How one value of a program lies in memory; strides in elements."""

    name: str
    """How messages call it."""
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    alignment: int
    """Largest power of two up to 4 that divides its address, in bytes."""
    prepared: Arrangement | None = None
    """The order of a prepared weight."""
    k_axis: int = 0
    """For a prepared weight: the axis that the product sums over."""

    @staticmethod
    def of(name: str, array: Array) -> TensorLayout:
        """Return the layout of an array of the caller's."""
        return TensorLayout(
            name=name,
            dtype=array.dtype,
            shape=array.shape,
            strides=array.strides,
            alignment=alignment_of(array.pointer),
            prepared=array.prepared,
            k_axis=array.k_axis,
        )

    @staticmethod
    def packed(
        value: Value, dims: Mapping[str, int], order: Sequence[int] | None = None
    ) -> TensorLayout:
        """Return the layout of a value in new memory, its axes from the outermost in ``order``."""
        shape = value.type.extents(dims)
        return TensorLayout(
            name=value.name,
            dtype=value.type.dtype,
            shape=shape,
            strides=packed_strides(shape, order or ()),
            alignment=alignment_of(0),
        )


def refuse_overlap(storage: TensorLayout) -> None:
    """Refuse a result in which a longer step does not pass all that shorter ones reach (A035)."""
    reach = 1
    for stride, extent in sorted(zip(storage.strides, storage.shape, strict=True)):
        if extent > 1 and stride < reach:
            raise error("A035", name=storage.name, shape=storage.shape, strides=storage.strides)
        reach += (extent - 1) * stride


def refuse_negative(storage: TensorLayout) -> None:
    """Refuse an operand that is read backwards (A031)."""
    axes = zip(storage.shape, storage.strides, strict=True)
    if any(extent > 1 and stride < 0 for extent, stride in axes):
        raise error("A031", name=storage.name, strides=storage.strides)
