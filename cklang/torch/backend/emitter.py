# SPDX-License-Identifier: MIT
"""Tensors of a torch graph as values of the IR, and the operations that emissions are made of.

torch's graphs reshape all the time: a linear layer of ``[B, S, E]`` is a product of matrices of
``B*S`` rows between two views. In the IR a reshaped tensor is in memory, so a view between a
product and its activation would keep the activation out of the product's kernel. Therefore a
:class:`Tensor` keeps the shape in which its value was computed apart from the shape that torch
sees. A view changes the latter alone, and an operation works in the former where it can. The same
holds for the order of axes of convolutions, which torch numbers with the channels second and
kernels with the channels last.

Each aten op rounds its result to the dtype of torch's result, as eager torch does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import torch

from cklang.ir.nodes import Value
from cklang.torch.backend.extents import Shape, Unsupported, aligned, product
from cklang.torch.backend.joined import computed
from cklang.torch.backend.operations import Operations, Scalar
from cklang.types import DType, Kind, TensorType, bf16, bool_, f16, f32, i8, i32, i64

__all__ = [
    "DTYPES", "WIDE", "Emitter", "Scalar", "Tensor", "axes_within", "broadcast_shape",
    "channels_last", "dtype_of", "inverse",
]  # fmt: skip

DTYPES: Mapping[torch.dtype, DType] = MappingProxyType(
    {
        torch.float16: f16,
        torch.bfloat16: bf16,
        torch.float32: f32,
        torch.int8: i8,
        torch.int32: i32,
        torch.int64: i64,
        torch.bool: bool_,
    }
)
"""The dtypes of tensors that programs read."""

WIDE: Mapping[DType, DType] = MappingProxyType({f16: f32, bf16: f32, i8: i32})
"""In which dtype narrow numbers are computed."""


def dtype_of(dtype: torch.dtype) -> DType:
    """Return a dtype of torch as one of the IR.

    Example:
        >>> dtype_of(torch.bfloat16)
        ck.bf16
    """
    if dtype not in DTYPES:
        raise Unsupported(f"kernels have no {str(dtype).removeprefix('torch.')}")
    return DTYPES[dtype]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of the graph: a value of the IR, and the shape in which torch sees its elements."""

    value: Value
    shape: Shape
    order: tuple[int, ...] = ()
    """Which axis of :attr:`inner` each axis is; () if they are in the same order."""

    @property
    def dtype(self) -> DType:
        """Its dtype in the IR."""
        return self.value.type.dtype

    @property
    def own(self) -> Shape:
        """The shape in which it was computed."""
        return self.value.type.shape

    @property
    def inner(self) -> Shape:
        """Its shape with the axes in the order of :attr:`own`."""
        back = inverse(self.order)
        return tuple(self.shape[axis] for axis in back) if back else self.shape


class Emitter(Operations):
    """Builds the function of one program from tensors as torch sees them."""

    def param(self, name: str, dtype: DType, shape: Shape) -> Tensor:
        """Add a parameter."""
        return Tensor(self.parameter(name, TensorType(dtype=dtype, shape=shape)), shape)

    def settled(self, tensor: Tensor) -> Tensor:
        """Return a tensor with its axes in the order in which torch sees them."""
        if not tensor.order:
            return tensor
        value = self.reshaped(tensor.value, tensor.inner)
        return Tensor(self.transposed(value, tensor.order), tensor.shape)

    def plain(self, tensor: Tensor) -> Value:
        """Return a tensor's value in the shape that torch sees."""
        return self.reshaped(self.settled(tensor).value, tensor.shape)

    def permuted(self, tensor: Tensor, order: Sequence[int]) -> Tensor:
        """Return a tensor with its axes in another order; ``order`` counts from the first axis."""
        shape = tuple(tensor.shape[axis] for axis in order)
        if tensor.order:
            moved = tuple(tensor.order[axis] for axis in order)
            return Tensor(tensor.value, shape, () if moved == tuple(sorted(moved)) else moved)
        groups = aligned(tensor.own, tensor.shape)
        place = {axis: group for group in groups for axis in group.theirs}
        perm: list[int] = [axis for group in groups if not group.theirs for axis in group.ours]
        for at, axis in enumerate(order):
            theirs = place[axis].theirs
            if theirs[0] == axis and tuple(order[at : at + len(theirs)]) == theirs:
                perm += place[axis].ours
        if len(perm) != len(tensor.own):  # a group of axes does not stay together
            return Tensor(self.transposed(self.plain(tensor), tuple(order)), shape)
        return Tensor(self.transposed(tensor.value, tuple(perm)), shape)

    def viewed(self, tensor: Tensor, shape: Shape) -> Tensor:
        """Return a tensor in another shape."""
        if not tensor.order:
            return Tensor(tensor.value, shape)
        blocks: list[tuple[int, int]] = []
        for group in aligned(tensor.shape, shape):
            inner = [tensor.order[axis] for axis in group.ours]
            if inner and inner != list(range(inner[0], inner[0] + len(inner))):
                return Tensor(self.settled(tensor).value, shape)
            # A new axis of extent 1 is beside the axes before it.
            at = inner[0] if inner else blocks[-1][0] if blocks else 0
            blocks += [(at, axis) for axis in group.theirs]
        axes = [axis for _, axis in sorted(blocks)]
        order = inverse(tuple(axes))
        return Tensor(tensor.value, shape, () if axes == sorted(axes) else order)

    def wide(self, tensor: Tensor) -> Tensor:
        """Return a tensor in the dtype in which its numbers are computed."""
        dtype = WIDE.get(tensor.dtype, tensor.dtype)
        return replace(tensor, value=self.cast(tensor.value, dtype))

    def spread(self, tensor: Tensor, own: Shape, shape: Shape) -> Value:
        """Return a tensor broadcast to ``shape``, its elements in the shape ``own``."""
        if (tensor.own, tensor.shape) == (own, shape):
            return tensor.value
        axes = axes_within(tensor.shape, own, shape)
        if axes is None:
            raise Unsupported("its operands do not broadcast")
        value = self.reshaped(tensor.value, tuple(own[axis] for axis in axes))
        return self.broadcast(value, own, axes)

    def together(self, tensors: Sequence[Tensor], shape: Shape) -> tuple[Value, ...]:
        """Return tensors broadcast to ``shape``, their elements in a shape that suits all.

        That of a tensor with all elements is preferred to ``shape`` itself, a computed one first.
        """
        full = [tensor for tensor in tensors if tensor.shape == shape]
        full.sort(key=lambda tensor: tensor.value.name in self.params)
        suitable = (
            own
            for own in [*(tensor.own for tensor in full), shape]
            if all(axes_within(tensor.shape, own, shape) is not None for tensor in tensors)
        )
        own = next(suitable, shape)
        return tuple(self.spread(tensor, own, shape) for tensor in tensors)

    def pointwise(self, op: str, items: Sequence[Tensor | Scalar], **attrs: Any) -> Tensor:
        """Apply a pointwise op of the IR to tensors of the dtypes that it takes, and to numbers.

        Tensors broadcast as in torch. A number takes the dtype of the tensors.
        """
        tensors = [item for item in items if isinstance(item, Tensor)]
        shape = broadcast_shape([tensor.shape for tensor in tensors])
        orders = (tensor.order for tensor in tensors if tensor.order and tensor.shape == shape)
        order = next(orders, ())
        if order:
            tensors = [self._in_order(tensor, order) for tensor in tensors]
        else:
            tensors = [self.settled(tensor) for tensor in tensors]
        inner = Tensor(tensors[0].value, shape, order).inner
        values = iter(self.together(tensors, inner))
        operands: list[Value | Scalar] = [
            next(values) if isinstance(item, Tensor) else item for item in items
        ]
        first = next(item for item in reversed(operands) if isinstance(item, Value))
        numbers = [
            item
            if isinstance(item, Value)
            else self.constant(item, first.type.dtype, first.type.shape)
            for item in operands
        ]
        return Tensor(computed(self, op, numbers, attrs), shape, order)

    def _in_order(self, tensor: Tensor, order: tuple[int, ...]) -> Tensor:
        """Return a tensor that broadcasts to one of an order, with its axes in that order."""
        if tensor.order == order:
            return Tensor(tensor.value, tensor.inner)
        tensor = self.settled(tensor)
        padded = (1,) * (len(order) - len(tensor.shape)) + tensor.shape
        return self.permuted(Tensor(tensor.value, padded), inverse(order))

    def result(self, tensor: Tensor, dtype: torch.dtype) -> Tensor:
        """Round a computed tensor to the dtype of torch's result."""
        to, value = dtype_of(dtype), tensor.value
        if to == i64 and tensor.dtype in (i8, i32, bool_):  # the runtime converts i32
            to = i32
        if tensor.dtype.kind is to.kind is Kind.INT and to.bits < tensor.dtype.bits:
            # A cast of the IR limits integers, and torch's drops bits.
            count = tensor.dtype.bits - 8 * to.bytes
            bits = self.constant(count, tensor.dtype, value.type.shape)
            value = self.append("left_shift", value, bits)
            value = self.append("right_shift", value, bits)
        return replace(tensor, value=self.cast(value, to))

    def axes_of(self, tensor: Tensor, axes: Sequence[int]) -> tuple[Tensor, tuple[int, ...]]:
        """Return a tensor, and the axes of its own shape that are ``axes`` of torch's shape."""
        own: list[int] = []
        for group in aligned(tensor.own, tensor.shape):
            chosen = [axis in axes for axis in group.theirs if tensor.shape[axis] != 1]
            if any(chosen) and not all(chosen):
                value = self.plain(tensor)
                return Tensor(value, tensor.shape), tuple(axes)
            if (chosen and all(chosen)) or (
                not chosen and group.ours and all(axis in axes for axis in group.theirs or (-1,))
            ):
                own += group.ours
        return tensor, tuple(own)

    def split(self, tensor: Tensor, axis: int) -> tuple[Value, int]:
        """Return a value, and how many of its first axes are those of torch before ``axis``."""
        before = product(tensor.shape[:axis])
        for count in range(len(tensor.own), -1, -1):
            if product(tensor.own[:count]) == before:
                return tensor.value, count
        return self.plain(tensor), axis


def channels_last(rank: int) -> tuple[int, ...]:
    """Return the order that puts the second axis last.

    Example:
        >>> channels_last(4)
        (0, 2, 3, 1)
    """
    return (0, *range(2, rank), 1)


def inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    """Return the order that takes axes back.

    Example:
        >>> inverse((0, 3, 1, 2))
        (0, 2, 3, 1)
    """
    return tuple(order.index(axis) for axis in range(len(order)))


def axes_within(part: Shape, own: Shape, shape: Shape) -> tuple[int, ...] | None:
    """Return along which axes of ``own`` a tensor runs that broadcasts to ``shape``.

    None if it runs along some of the axes that are one axis in ``own``.

    ``own`` is another shape of as many elements as ``shape``.

    Example:
        >>> axes_within((16,), (2, 3, 16), (6, 16)), axes_within((3, 16), (6, 16), (2, 3, 16))
        ((2,), None)
    """
    padded = (1,) * (len(shape) - len(part)) + part
    axes: list[int] = []
    for group in aligned(own, shape):
        wanted = [shape[axis] for axis in group.theirs if shape[axis] != 1]
        has = [padded[axis] for axis in group.theirs if shape[axis] != 1]
        if wanted and has == wanted:
            axes += group.ours
        elif any(extent != 1 for extent in has):
            return None
    return tuple(axes)


def broadcast_shape(shapes: Sequence[Shape]) -> Shape:
    """Return the shape to which shapes broadcast.

    Example:
        >>> broadcast_shape([(4, 1), (3,)])
        (4, 3)
    """
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(
        next((extent for extent in extents if extent != 1), 1)
        for extents in zip(*padded, strict=True)
    )
