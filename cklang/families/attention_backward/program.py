# SPDX-License-Identifier: MIT
"""The launches that give the gradients of an attention within a program.

One kernel gives parts of dq, dk and dv in f32, others add them up to what the program stores. The
forward kernel and the sums along heads are kernels of the program itself; those of
``ck.attention_grad`` stand in :mod:`.stages`.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from cklang.families.attention.copies import insert_head_copies
from cklang.families.attention.helper_keys import reduce_key
from cklang.families.attention.host import (
    AttentionGradProblem,
    AttentionGradShim,
    AttentionTensor,
    ReduceProblem,
    ReduceShim,
)
from cklang.families.attention.pipelines import parts_of_dq
from cklang.families.attention.problem import AttentionCase, AttentionGradCase
from cklang.families.attention_backward.fuse import FusedAttentionGrad, GradientOut
from cklang.families.attention_backward.parts import gradient_at, rows_of, sizes_of, sum_at
from cklang.families.attention_backward.stages import forward_case, grad_case
from cklang.families.layout_copy.plan import LayoutCopy, copied_in_order, copy_of
from cklang.families.protocol import Launches, Planning, Sel
from cklang.families.stage import Stage
from cklang.families.tensor_layout import TensorLayout, refuse_negative
from cklang.fusion.plan import View
from cklang.ir.nodes import Value

_GRAD, _D, _LSE, _BIAS, _DS = "grad", "d", "lse", "bias", "ds"
_PARTS = ("dq_parts", "dk_parts", "dv_parts")
_WHY = "so that the gradients of attention find it packed"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed:
    """A kernel with the copies that its operands need."""

    case: AttentionCase
    grad: AttentionTensor
    names: Mapping[str, str]
    """The values of a program that the kernel reads, by what the requests call them."""
    bias: AttentionTensor | None
    """Where what the score adds is, if CK Tile's own bias is."""
    copies: tuple[LayoutCopy, ...]


def gradient_problem(
    kernel: FusedAttentionGrad, layouts: Mapping[str, TensorLayout], dims: Mapping[str, int]
) -> AttentionGradCase | None:
    """Return the problem of the kernel that gives the parts; None if there is no score."""
    case = _placed(kernel, layouts, dims).case
    return _case_of(kernel, case) if case.has_scores else None


def _case_of(kernel: FusedAttentionGrad, case: AttentionCase) -> AttentionGradCase:
    return grad_case(case, False, kernel.is_square, kernel.derivative)


def launches_of(kernel: FusedAttentionGrad, planning: Planning[Sel]) -> Iterator[Launches[Sel]]:
    """Yield the launch that gives the parts with the sums behind it, or the sums of no parts."""
    placed = _placed(kernel, planning.layouts, planning.dims)
    case = placed.case
    if not case.has_scores:
        yield from _empty(kernel, placed, planning)
        return
    problem = _case_of(kernel, case)
    selection = planning.select(problem, problem.functions)
    count = parts_of_dq(selection.key, case.problem.seqlen_k)
    own = {name: f"{name} of %{kernel.results[0].name}" for name in _PARTS}
    names = {**placed.names, **own}
    sizes = {own[name]: size for name, size in sizes_of(case, count).items() if name in own}
    sums = [out for out in kernel.outs if out.side != _DS]
    squares = [_square(planning, out) for out in kernel.outs if out.side == _DS]
    for square in squares:
        names[_DS], sizes[square.name] = square.name, square.size
    values = tuple(dict.fromkeys(names.values()))
    # Rows of no sequence, keys beyond a length, and tiles that no query sees are not written.
    leaves_rows = case.signature.packed or problem.signature.lengths
    zeroed = own.values() if leaves_rows else (own["dq_parts"],)
    zeros = {v.name: 0 for v in kernel.forward.reads if 0 in planning.layouts[v.name].shape}
    main = Stage(
        key=selection.key,
        functions=selection.functions,
        problem=problem,
        shim=AttentionGradShim,
        values=values,
        written=frozenset(sizes),
        request=partial(_gradient, placed, names, values, squares),
        temporaries=sizes,
        constants={**dict(kernel.forward.constants), **zeros},
        zeroed=(*zeroed, *(square.name for square in squares)),
    )
    copies = tuple(stage for copy in placed.copies for stage in copy.stages(planning.spec, _WHY))
    after = [
        stage
        for out in sums
        for stage in _sum(placed, planning, out, own[f"{out.side}_parts"], count)
    ]
    after += [stage for square in squares for stage in square.copied(planning)]
    yield Launches(selection=selection, main=main, before=copies, after=tuple(after))


def _empty(
    kernel: FusedAttentionGrad, placed: _Placed, planning: Planning[Sel]
) -> Iterator[Launches[Sel]]:
    """Yield the sums of no parts: there is no query, or no key."""
    for out in kernel.outs:
        if out.side == _DS:  # without elements
            continue
        parts = f"{out.side}_parts of %{kernel.results[0].name}"
        for stage in _sum(placed, planning, out, parts, 0):
            why = "no query meets a key: the sum of no parts"
            selection = planning.fixed(stage.key, stage.problem, stage.functions, why)
            yield Launches(selection=selection, main=stage)


def _placed(
    kernel: FusedAttentionGrad, layouts: Mapping[str, TensorLayout], dims: Mapping[str, int]
) -> _Placed:
    own = {kernel.forward.o.name: TensorLayout.packed(kernel.forward.o, dims)}
    placed = insert_head_copies(kernel.forward, {**layouts, **own})
    storage, copies = dict(placed.storage), list(placed.before)
    grad = kernel.grad
    copied = copied_in_order(grad.value, grad.perm, storage)
    if copied is None and _has_steps(storage[grad.value.name], grad):
        name = f"{grad.value.name}_packed"
        packed_grad = replace(TensorLayout.packed(grad.value, dims), name=name)
        copied = Value(name=name, type=grad.value.type), packed_grad
    if copied is not None:
        value, storage[copied[0].name] = copied
        refuse_negative(storage[grad.value.name])
        copies.append(copy_of(storage, grad.value.name, value.name))
        grad = View(value=value, perm=grad.perm)
    packed = {}
    inner = kernel.inner
    orders = {_LSE: (kernel.lse, ()), _D: (inner.value, inner.perm)}
    orders |= {} if kernel.bias is None else {_BIAS: (kernel.bias.value, ())}
    for name, (value, order) in orders.items():
        packed[name] = value.name
        layout = TensorLayout.packed(value, dims, [axis for axis in order if axis is not None])
        if storage[value.name].strides != layout.strides and 0 not in layout.shape:
            packed[name] = f"{value.name}_packed"
            storage[packed[name]] = replace(layout, name=packed[name])
            refuse_negative(storage[value.name])
            copies.append(copy_of(storage, value.name, packed[name]))
    case = forward_case(placed.kernel, storage, dims)
    bias = None
    if kernel.bias is not None:
        bias = AttentionTensor.of(storage[packed[_BIAS]].strides, kernel.bias.axes)
    inputs = (*(v.name for v in placed.kernel.inputs), *dict(kernel.forward.constants))
    return _Placed(
        case=case,
        grad=AttentionTensor.of(storage[grad.value.name].strides, grad.perm[:3]),
        names={**{f"%{name}": name for name in inputs}, _GRAD: grad.value.name, **packed},
        bias=bias,
        copies=tuple(dict.fromkeys(copies)),
    )


def _has_steps(layout: TensorLayout, view: View) -> bool:
    """Tell whether the elements of a head are not side by side, though no axes are exchanged."""
    last = view.perm[-1] or 0
    return 0 not in layout.shape and layout.shape[last] > 1 and layout.strides[last] != 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Square:
    """The place of ds: the result, or memory without gaps that is copied to it."""

    out: GradientOut
    name: str
    layout: TensorLayout

    @property
    def size(self) -> int:
        """Its bytes."""
        return math.prod(self.layout.shape) * self.layout.dtype.bytes

    @property
    def tensor(self) -> AttentionTensor:
        """Its strides along batch, head and query."""
        axes = self.out.axes
        return rows_of(*(self.layout.strides[axes.index(axis)] for axis in range(3)))

    def copied(self, planning: Planning[Sel]) -> Iterator[Stage]:
        """Yield the copy to the result, if it needs one."""
        result = self.out.value.name
        if self.name != result:
            copy = copy_of({**planning.layouts, self.name: self.layout}, self.name, result)
            yield from copy.stages(planning.spec, "to the strides of the result")


def _square(planning: Planning[Sel], out: GradientOut) -> _Square:
    layout = planning.layouts[out.value.name]
    if layout.strides[-1] == 1 and _has_no_gaps(layout):
        return _Square(out=out, name=out.value.name, layout=layout)
    packed = TensorLayout.packed(out.value, planning.dims)
    return _Square(out=out, name=f"{out.value.name}_packed", layout=packed)


def _has_no_gaps(layout: TensorLayout) -> bool:
    pairs = list(zip(layout.shape, layout.strides, strict=True))
    reach = sum((extent - 1) * stride for extent, stride in pairs)
    return reach + 1 == math.prod(layout.shape) and all(stride >= 0 for _, stride in pairs)


def _gradient(
    placed: _Placed,
    names: Mapping[str, str],
    values: Sequence[str],
    squares: Sequence[_Square],
    addresses: Sequence[int],
) -> AttentionGradProblem:
    of_values = dict(zip(values, addresses, strict=False))
    at = {name: of_values[value] for name, value in names.items()}
    problem = gradient_at(placed.case, replace(placed.grad, pointer=at[_GRAD]), at)
    if placed.bias is not None:
        bias = replace(placed.bias, pointer=at[_BIAS])
        problem = replace(problem, forward=replace(problem.forward, bias=bias))
    for square in squares:
        problem = replace(problem, grad_bias=replace(square.tensor, pointer=at[_DS]))
    return problem


def _sum(
    placed: _Placed, planning: Planning[Sel], out: GradientOut, parts: str, of_dq: int
) -> Iterator[Stage]:
    """Yield the launch that adds the parts of a gradient up, and a copy to odd strides.

    dq has ``of_dq`` parts: 0 if there are none of anything.
    """
    (side, result, axes), case = out, placed.case
    layout = planning.layouts[result.name]
    if 0 in layout.shape:
        return
    p = case.problem
    shared = p.heads // p.kv_heads if p.kv_heads else 1
    is_odd = layout.shape[-1] > 1 and layout.strides[-1] != 1
    target = f"{result.name}_packed" if is_odd else result.name
    lies = TensorLayout.packed(result, planning.dims) if is_odd else layout
    target_tensor = rows_of(
        *(lies.strides[axes.index(axis)] if axis in axes else 0 for axis in range(3))
    )
    count = of_dq if side == "dq" or not of_dq else shared
    yield Stage(
        key=reduce_key(planning.spec.name, result.type.dtype),
        problem=case,
        shim=ReduceShim,
        values=(parts, target),
        written=frozenset((target,)),
        request=_adding(case, side, count, target_tensor),
        temporaries={parts: 4, target: result.type.bytes(planning.dims)},
    )
    if is_odd:
        copy = copy_of({**planning.layouts, target: lies}, target, result.name)
        yield from copy.stages(planning.spec, "to the strides of the result")


def _adding(
    case: AttentionCase, side: str, count: int, result: AttentionTensor
) -> Callable[[Sequence[int]], ReduceProblem]:
    def request(addresses: Sequence[int]) -> ReduceProblem:
        parts, target, *_ = addresses
        at = {f"{side}_parts": parts}
        return sum_at(case, side, count, replace(result, pointer=target), at)

    return request
