# SPDX-License-Identifier: MIT
"""A product and the operations that Inductor fuses into it as one program of the IR.

Inductor's loops read and write buffers at indices. A loop that reads all elements of the product,
each once, computes them in the order of memory: its axes are those of the product, or a view of
them. So the program computes in that order, and every other buffer is a parameter with the strides
with which the loop reads it. If it does not plan as one kernel, the operations are not fused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch
from torch._inductor import ir
from torch._inductor.virtualized import V

from cklang.errors import CkError
from cklang.runtime.ir_text import parse
from cklang.runtime.op import Op
from cklang.torch.backend.emitter import DTYPES, Emitter, Tensor, inverse
from cklang.torch.backend.extents import Shape, Unsupported, extent_of_expression
from cklang.torch.inductor.anchors import Anchor, Operand, finished
from cklang.torch.inductor.memory import Axes, View, hint, is_dense, slowest_first
from cklang.torch.inductor.pointwise import Pointwise
from cklang.types import Extent

_DTYPES_WRITTEN = frozenset(DTYPES) - {torch.int64}


@dataclass(frozen=True, slots=True)
class FusedProgram:
    """A program, and the memory that it reads and writes."""

    text: str
    reads: tuple[View, ...]
    """For each parameter."""
    writes: tuple[View, ...]
    """For each result."""


@dataclass(frozen=True, slots=True)
class _Stored:
    """A buffer that the program computes: its elements in the order of memory."""

    tensor: Tensor
    sizes: tuple[sympy.Expr, ...]
    dtype: torch.dtype


class _Fusing:
    """Builds the program of one kernel, loop by loop."""

    def __init__(self, name: str) -> None:
        self.to = Emitter(name)
        self.reads: list[View] = []
        self.stored: dict[str, _Stored] = {}
        self._known: dict[View, Tensor] = {}
        self._sizes: dict[Extent, sympy.Expr] = {}

    def extents(self, sizes: Sequence[sympy.Expr]) -> Shape:
        """Return sizes of Inductor as extents of the IR."""
        shape = tuple(extent_of_expression(sympy.sympify(size)) for size in sizes)
        self._sizes |= dict(zip(shape, map(sympy.sympify, sizes), strict=True))
        return shape

    def anchor(self, anchor: Anchor, template: Any) -> None:
        """Append the product of a template buffer."""
        operands = []
        for place, node in enumerate(template.inputs):
            view = view_of(node, is_spread=anchor.name == "addmm" and place == 0)
            self.reads.append(view)
            operands.append(Operand(self.extents(view.size), node.get_dtype()))
        sizes = tuple(template.get_size())
        result = anchor.emitted(self.to, operands, self.extents(sizes))
        strides = tuple(template.get_stride())
        order = tuple(axis for axis in slowest_first(strides) if sizes[axis] != 1)
        ordered = tuple(sizes[axis] for axis in order)
        name = template.get_name()
        if not is_dense(ordered, tuple(strides[axis] for axis in order)):
            raise Unsupported(f"{name} has gaps between its elements")
        ones = tuple(axis for axis in range(len(sizes)) if axis not in order)
        moved = self.to.permuted(result, (*ones, *order))
        tensor = self.to.viewed(moved, self.extents(ordered))
        self.stored[name] = _Stored(tensor, ordered, template.get_dtype())

    def loop(self, node: ir.ComputedBuffer) -> None:
        """Append what one loop of Inductor computes."""
        data = node.data
        if not isinstance(data, ir.Pointwise):
            raise Unsupported(f"{node.get_name()} is a reduction or a scatter")
        (index,) = data.inner_fn_args()
        written = node.get_layout().make_indexer()(index)
        pairs = [
            (symbol, sympy.sympify(size))
            for symbol, size in zip(index, data.get_size(), strict=True)
            if size != 1
        ]
        axes = Axes(tuple(one for one, _ in pairs), tuple(size for _, size in pairs))
        strides, offset = axes.strides(written)
        order = slowest_first(strides)
        axes = Axes(
            *(tuple(numbers[axis] for axis in order) for numbers in (axes.symbols, axes.sizes))
        )
        if offset != 0 or not is_dense(axes.sizes, axes.strides(written)[0]):
            raise Unsupported(f"{node.get_name()} has gaps between its elements")
        handler = Pointwise(self.to, lambda name, at: self._loaded(axes, name, at))
        with V.set_ops_handler(handler):
            value: Any = data.make_loader()(index)
        tensor = self._spread(value.value, axes)
        self.stored[node.get_name()] = _Stored(tensor, axes.sizes, node.get_dtype())

    def _spread(self, value: Any, axes: Axes) -> Tensor:
        """Return the result of a loop with all its elements."""
        if not isinstance(value, Tensor):
            raise Unsupported("it fills a buffer with a number")
        shape = self.extents(axes.sizes)
        if value.shape == shape:
            return value
        return Tensor(self.to.spread(value, shape, shape), shape)

    def _loaded(self, axes: Axes, name: str, index: Any) -> Tensor:
        strides, offset = axes.strides(index)
        if name in self.stored:
            return self._computed(axes, self.stored[name], strides, offset)
        sizes = tuple(
            sympy.Integer(1) if stride == 0 else size
            for size, stride in zip(axes.sizes, strides, strict=True)
        )
        view = View(name, sizes, strides, offset)
        if view not in self._known:
            dtype = V.graph.get_dtype(name)
            if dtype not in DTYPES:
                raise Unsupported(f"kernels have no {str(dtype).removeprefix('torch.')}")
            self._known[view] = self.to.param(
                f"read{len(self._known)}", DTYPES[dtype], self.extents(sizes)
            )
            self.reads.append(view)
        return self._known[view]

    def _computed(
        self, axes: Axes, stored: _Stored, strides: tuple[sympy.Expr, ...], offset: sympy.Expr
    ) -> Tensor:
        """Return elements that the program computes, with the axes of a loop."""
        order = slowest_first(strides)
        sizes = tuple(axes.sizes[axis] for axis in order)
        ordered = tuple(strides[axis] for axis in order)
        count, wanted = (sympy.prod(space) for space in (stored.sizes, sizes))
        is_all = V.graph.sizevars.statically_known_equals(count, wanted)
        if offset != 0 or not is_all or not is_dense(sizes, ordered):
            raise Unsupported("it reads some elements of the product twice, or not at all")
        return self.to.permuted(self.to.viewed(stored.tensor, self.extents(sizes)), inverse(order))

    def result(self, name: str) -> tuple[Tensor, View]:
        """Return what a buffer stores, and where in memory the kernel writes it."""
        stored = self.stored[name]
        if stored.dtype not in _DTYPES_WRITTEN:
            raise Unsupported(f"kernels write no {str(stored.dtype).removeprefix('torch.')}")
        tensor = self.to.result(stored.tensor, stored.dtype)
        if tensor.order:
            tensor = Tensor(self.to.plain(tensor), tensor.shape)
        unknown = [symbol for symbol in tensor.own if symbol not in self._sizes]
        if unknown:
            raise Unsupported(f"its extent {unknown[0]} is no size of a buffer")
        sizes = tuple(self._sizes[extent] for extent in tensor.own)
        stride = tuple(map(sympy.sympify, ir.FlexibleLayout.contiguous_strides(sizes)))
        return tensor, View(name, sizes, stride, sympy.Integer(0))


def view_of(node: Any, *, is_spread: bool = False) -> View:
    """Return the elements of an operand of Inductor.

    ``node`` is a buffer, or a view of one. If ``is_spread``, an axis along which the same element
    is repeated has extent 1.
    """
    layout = node.get_layout()
    stride = tuple(map(sympy.sympify, layout.stride))
    size = tuple(
        sympy.Integer(1) if is_spread and step == 0 else sympy.sympify(extent)
        for extent, step in zip(layout.size, stride, strict=True)
    )
    return View(node.get_name(), size, stride, sympy.sympify(layout.offset))


@cache
def parsed(text: str) -> Op:
    """Return the op of a program's text, the same one for the same text.

    Example:
        >>> parsed("func @same(%x: f32[N]) -> f32[N] { return %x }").program.name
        'same'
    """
    return parse(text)


def fused(
    anchor: Anchor, template: Any, loops: Sequence[Any], kept: Sequence[str], device: str | None
) -> FusedProgram:
    """Return the program of a product and of loops that follow it.

    ``template`` is the product's buffer, ``loops`` are those of the loops, in order, and ``kept``
    the names of buffers that others read.

    Raises:
        Unsupported: They are not one kernel.
    """
    try:
        fusing = _Fusing(anchor.name)
        fusing.anchor(anchor, template)
        for node in loops:
            fusing.loop(node)
        results = [fusing.result(name) for name in kept]
        function = finished(fusing.to, [tensor for tensor, _ in results])
    except CkError as refusal:
        raise Unsupported(f"{refusal.code}: {refusal.message}") from refusal
    names = [param.name for param in function.params]
    dtypes: Mapping[str, str] = {
        parameter.name: parameter.type.dtype.name for parameter in function.params
    }
    reads = tuple(fusing.reads)
    writes = tuple(view for _, view in results)
    _check(
        str(function),
        tuple(_described(view, dtypes[name]) for view, name in zip(reads, names, strict=True)),
        tuple(
            _described(view, value.type.dtype.name)
            for view, value in zip(writes, function.results, strict=True)
        ),
        device,
    )
    return FusedProgram(str(function), reads, writes)


_Description = tuple[tuple[int, ...], str, tuple[int, ...]]


def _described(view: View, dtype: str) -> _Description:
    return tuple(map(hint, view.size)), dtype, tuple(map(hint, view.stride))


@cache
def _mistake(
    text: str, reads: tuple[_Description, ...], writes: tuple[_Description, ...], device: str | None
) -> str | None:
    """Return why a program is not one kernel; None if it is."""
    op = parsed(text)
    try:
        kernels = op._plan_for(op.program.specialise()).kernels
    except CkError as refusal:
        return f"{refusal.code}: {refusal.message}"
    if len(kernels) > 1:
        return f"the planner makes {len(kernels)} kernels of it"
    out: Any = writes if len(writes) > 1 else writes[0]
    for mistake in op.check(*reads, out=out, device=device).mistakes:
        return f"{mistake.code}: {mistake.message}"
    return None


def _check(
    text: str, reads: tuple[_Description, ...], writes: tuple[_Description, ...], device: str | None
) -> None:
    mistake = _mistake(text, reads, writes, device)
    if mistake is not None:
        raise Unsupported(mistake)
