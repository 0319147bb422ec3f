# SPDX-License-Identifier: MIT
"""What fusion decides about a convolution: one kernel with its operands and its epilogue."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from cklang.families.layout_copy.plan import LayoutCopy, WithCopies, copied_in_order, copy_of
from cklang.families.tensor_layout import TensorLayout, refuse_negative, refuse_overlap
from cklang.fusion.explain import kernel_lines
from cklang.fusion.functions import Functions
from cklang.fusion.kernel import Epilogue, KernelMaker, Maker, spans_of
from cklang.fusion.plan import FusedKernel, Read, View
from cklang.fusion.unfuse import kernel_function, matrix_of
from cklang.ir.builder import Builder
from cklang.ir.convolution import axis_names
from cklang.ir.nodes import Function, Operation, Value, print_attr
from cklang.ir.windows import DIRECTIONS

FEW_CHANNELS = 4
"""Channels of a group that windows take; matrix units are quicker for more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedWindows(FusedKernel):
    """One kernel of an operation with windows over images, and of what follows it."""

    operation: Operation
    a: View
    epilogue: Function
    reads: tuple[Read, ...]
    result: Value
    axes: tuple[int, ...]

    @property
    def anchors(self) -> tuple[str, ...]:
        """The name of the result of ``operation``."""
        return (self.operation.result.name,)

    @property
    def results(self) -> tuple[Value, ...]:
        """The value that it writes."""
        return (self.result,)

    @property
    def functions(self) -> Functions:
        """Its one function."""
        return Functions(epilogue=self.epilogue)

    @property
    def attrs(self) -> str:
        """The attributes of ``operation`` as text."""
        return ", ".join(f"{name} {print_attr(attr)}" for name, attr in self.operation.attrs)


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedConv(FusedWindows):
    """One kernel: ``result = cast(epilogue(operation(a, b), reads…))`` of a convolution op.

    The fields are those of :class:`cklang.families.gemm.plan.FusedGemm`, but that ``perm`` of
    ``a`` and ``b`` and ``axes`` of the reads are in the order of the axes of ``operation``'s
    operands and result, channels last; ``operation`` has the windows and the extents.
    """

    b: View

    family: ClassVar[str] = "conv"
    more: ClassVar[tuple[Read, ...]] = ()
    depth: ClassVar[int] = 1
    shares_numbers: ClassVar[bool] = False

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values it reads, each once, in the order a, b, reads."""
        values = (self.a.value, self.b.value, *(read.value for read in self.reads))
        return tuple(dict.fromkeys(values))

    def lines(self) -> Iterator[str]:
        """Yield what it computes as lines of text."""
        sums = f"  acc = {self.operation.op}({self.a.tensor}, {self.b.tensor}): {self.attrs}"
        return kernel_lines(self, axis_names(self.operation), [sums])


Windows = TypeVar("Windows", bound=FusedWindows)


def fused_windows(
    kernel: type[Windows], operands: Sequence[str], maker: KernelMaker, walk: Epilogue
) -> Windows:
    """Return the kernel of a root whose anchor has windows; ``operands`` are fields of it."""
    anchor = walk.anchor
    axes = maker.flow.orientation(walk.root)
    order = tuple(axes.index(axis) for axis in range(anchor.result.type.rank))
    stored = (maker.stored(walk.colour, index) for index in range(len(operands)))
    views: dict[str, Any] = {
        name: View(value=value, perm=perm)
        for name, (value, perm) in zip(operands, stored, strict=True)
    }
    epilogue = walk.run()
    return kernel(
        name=maker.flow.function.name,
        operation=anchor,
        epilogue=epilogue,
        reads=walk.reads(order),
        result=maker.flow.value(walk.root),
        axes=order,
        spans=spans_of([anchor, *epilogue.body]),
        **views,
    )


MAKERS: Mapping[str, Maker] = MappingProxyType(
    dict.fromkeys(
        DIRECTIONS, Maker(make=partial(fused_windows, FusedConv, ("a", "b")), epilogue=True)
    )
)
"""The anchors of convolutions, by op."""


def insert_layout_copies(
    kernel: FusedConv, storage: Mapping[str, TensorLayout]
) -> WithCopies[FusedConv]:
    """Return a kernel with the copies that its program needs.

    A program needs them if the channels of a convolution are on another axis than the last.
    """
    if 0 in storage[kernel.result.name].shape:
        return WithCopies(kernel=kernel, storage=storage)
    layouts = dict(storage)
    origins: dict[str, str] = {}
    before: list[LayoutCopy] = []
    views = []
    for view in (kernel.a, kernel.b):
        copied = copied_in_order(view.value, view.perm, storage)
        if copied is not None:
            name = copied[0].name
            layouts[name], origins[name] = copied[1], view.value.name
            refuse_negative(storage[view.value.name])
            before.append(copy_of(layouts, view.value.name, name))
        views.append(view if copied is None else View(value=copied[0], perm=view.perm))
    after: list[LayoutCopy] = []
    result = kernel.result
    copied = copied_in_order(result, kernel.axes, storage)
    if copied is not None:
        name = copied[0].name
        layouts[name], origins[name] = copied[1], result.name
        refuse_overlap(storage[result.name])
        refuse_negative(storage[result.name])
        after.append(copy_of(layouts, name, result.name))
        result = copied[0]
    return WithCopies(
        kernel=replace(kernel, a=views[0], b=views[1], result=result),
        storage=layouts,
        before=tuple(dict.fromkeys(before)),
        after=tuple(after),
        origins=origins,
    )


def convolution_function(kernel: FusedConv) -> Function:
    """Return the function whose parameters are ``kernel.inputs``, with the kernel's result."""
    return kernel_function(kernel, partial(_sums, kernel), [kernel.axes])


def _sums(kernel: FusedConv, builder: Builder, params: Mapping[str, Value]) -> list[Value]:
    operation = kernel.operation
    attrs, shape = dict(operation.attrs), operation.result.type.shape
    views = [matrix_of(builder, params, view) for view in (kernel.a, kernel.b)]
    return [builder.apply(operation.op, views, attrs, shape=shape)]
