# SPDX-License-Identifier: MIT
"""The gradients of an op that is an attention: the forward kernel with lse, then a plan of stages.

==========  ==============================================  ======================================
stage       gives                                           reads
==========  ==============================================  ======================================
forward     o and lse                                       q, k, v
dot         d, o times its gradient summed along the head   o, grad
gradient    the parts of dq, dk and dv in f32; dbias        q, k, v, grad, lse, d
sums        dq, dk and dv, rounded once                     the parts
==========  ==============================================  ======================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from cklang.arch import ArchSpec
from cklang.attention_keys import (
    AttentionAlgorithm,
    AttentionGradAlgorithm,
    AttentionGradKey,
    AttentionKey,
    ReduceKey,
    ScoreKind,
)
from cklang.errors import error
from cklang.fusion.attention_plan import AttentionFunctions, AttentionPlan, FusedAttention
from cklang.fusion.plan import View
from cklang.fusion.variants import added_bias
from cklang.ir.nodes import Function, Value
from cklang.lowering.attention_face import (
    AttentionFace,
    AttentionGradFace,
    AttentionGradProblem,
    AttentionOperand,
    AttentionTensor,
    ReduceFace,
    ReduceProblem,
)
from cklang.runtime import arrays
from cklang.runtime.arrays import Array
from cklang.runtime.attention.call import _fixed as fixed_addresses
from cklang.runtime.attention.problem import AttentionCase, AttentionGradCase, case_of
from cklang.runtime.attention.select import select_attention
from cklang.runtime.attention.stage import Stage, Values, launch_step
from cklang.runtime.bind import Binding
from cklang.runtime.device import Device
from cklang.runtime.dispatch import CallPlan, Step, packed, stored, touched
from cklang.runtime.family import NOTHING, AnySignature
from cklang.runtime.problem import Storage
from cklang.runtime.record import Artifact
from cklang.runtime.registry import Registry
from cklang.runtime.rules import book_of
from cklang.runtime.select import Request, Selection, find
from cklang.runtime.space import Pattern
from cklang.types import f32

if TYPE_CHECKING:
    from cklang.runtime.op import Op

__all__ = ["Gradients", "attention_grad", "declare_gradients", "is_additive"]

_F32 = f32.bytes
_GRAD = "grad"
_OUTS = ("dq", "dk", "dv")
_DBIAS = "dbias"
_ADDING = ("add", "sub")


class Gradients(NamedTuple):
    """What :func:`attention_grad` returns: an array like each of the op's."""

    q: Any
    k: Any
    v: Any
    bias: Any = None
    """None unless it was asked for."""


def attention_grad(
    op: Op,
    *args: Any,
    grad: Any,
    deterministic: bool = False,
    bias: bool = False,
    device: str | None = None,
    **kwargs: Any,
) -> Gradients:
    """Return the gradients of ``sum(grad * o)`` by q, k and v, for an op that is an attention.

    Args:
        op: Made by ``@ck.op`` from one ``ck.attention``; its score may add to the product what it
            likes, but not multiply or bend it.
        *args: As in a call of the op.
        grad: The gradient of o: an array of its shape and dtype.
        deterministic: Whether dq is the same each time: each tile of keys then gives a part of its
            own, and they are added in one order.
        bias: Whether to give the gradient of the bias too, for a score that is
            ``s + bias[b, h, i, j]`` with a whole bias [B, H, S, T] of the dtype of q.
        device: As in a call of the op.
        **kwargs: As in a call of the op.

    Returns:
        (dq, dk, dv, dbias), of the shapes and dtypes of q, k, v and the bias; dbias is None unless
        it is asked for. Weights and their gradients are rounded to that dtype before the products
        that sum over queries or keys.

    Raises:
        CkUnsupportedError: G006, the score is more than a sum; G007, the op is no attention or has
            more to it; G008, its score has no bias whose gradient a kernel gives; K102, the GPU
            has no kernel for it.
        CkError: What a call raises.
    """
    from cklang.runtime.build import shared_builder
    from cklang.runtime.device import open_device

    binding = op._bind(op._values(args, kwargs))
    plan = _plan_of(op, binding)
    opened = open_device(device, binding.place)
    given = arrays.read(_GRAD, grad)
    sides = [getattr(plan.kernel, side) for side in "qkv"]
    likes = [binding.arrays[view.value.name] for view in sides]
    added = _bias(plan, binding) if bias else None
    if added is not None:
        likes.append(binding.arrays[added.name])
    made = [arrays.empty(like.shape, like.dtype, binding.library, binding.place) for like in likes]
    outs = [arrays.read(name, array) for name, array in zip((*_OUTS, _DBIAS), made, strict=False)]
    how = _How(request=op.request, deterministic=deterministic, bias=added)
    stages = _Stages(plan, binding, given, outs, opened.spec, how)
    builder = shared_builder()
    steps = list(stages.steps(opened, lambda wanted: builder.build_all(wanted)))
    pieces = [touched(array, written=False) for array in (*binding.arrays.values(), given)]
    pieces += [touched(out, written=True) for out in outs]
    call = CallPlan(opened, steps, pieces, stages.temporaries, binding.place, outs=len(outs))
    addresses = [array.pointer for array in (*binding.arrays.values(), given, *outs)]
    call.run(addresses, None)
    opened.synchronize()
    return Gradients(*made)


def declare_gradients(
    op: Op,
    binding: Binding,
    registry: Registry,
    gpu: str,
    among: Pattern | str | None,
    priority: int,
) -> int:
    """Declare the kernels of a bound op's gradients, deterministic and not; count the new ones.

    Args:
        op: An op that :func:`attention_grad` takes.
        binding: A call of it.
        registry: Where.
        gpu: The GPU: ``gfx942``.
        among: As in :meth:`cklang.Registry.declare`; a pattern is for the direction of its class,
            and the other one gets the default preset.
        priority: Of these kernels.

    Raises:
        CkUnsupportedError: G006, G007, it has no gradient.
        CkValueError: As :meth:`cklang.Registry.declare`.
    """
    plan = _plan_of(op, binding)
    case, functions = _forward_case(plan, binding), plan.kernel.functions
    gradients = [AttentionGradCase(forward=case, deterministic=each) for each in (False, True)]
    asked: list[AnySignature] = [case.signature, *(each.signature for each in gradients)]
    new = 0
    for wanted in asked:
        other = isinstance(among, Pattern) and among.of is not book_of(wanted).of
        some = None if other else among
        new += registry.declare(wanted, functions, gpu, some, priority=priority)
    signature = case.signature
    for key in (ReduceKey(True, signature.dtype_o, gpu), ReduceKey(False, signature.dtype, gpu)):
        new += registry.add(key, NOTHING, priority=priority)
    return new


def _plan_of(op: Op, binding: Binding) -> AttentionPlan:
    """Return the plan of an op that has a gradient.

    Raises:
        CkUnsupportedError: G006, G007, it has none.
    """
    plan = op._fuse(binding)
    if not isinstance(plan, AttentionPlan) or _is_more(plan.kernel):
        raise error("G007", name=op.program.name)
    score = plan.kernel.score
    if score is not None and not is_additive(score):
        raise error("G006", name=op.program.name, at=next(iter(plan.kernel.spans), None))
    return plan


def _storage(plan: AttentionPlan, binding: Binding) -> dict[str, Storage]:
    storage = {name: stored(name, array) for name, array in binding.arrays.items()}
    for value in (plan.kernel.o, plan.kernel.lse):
        if value is not None:
            storage[value.name] = packed(value, binding.dims)
    return storage


def _forward_case(plan: AttentionPlan, binding: Binding) -> AttentionCase:
    """Return the forward problem of the gradients: with lse, o and lse in new memory."""
    case = case_of(plan.kernel, _storage(plan, binding), binding.dims)
    p = case.problem
    return replace(
        case,
        signature=replace(case.signature, lse=True),
        problem=replace(p, lse=_rows(p.heads * p.seqlen_q, p.seqlen_q, 1)),
        values={**case.values, "o": "o", "lse": "lse"},
    )


def _is_more(kernel: FusedAttention) -> bool:
    """Tell whether a kernel does what the backward ones do not know."""
    return bool(kernel.starts or kernel.lengths or kernel.output)


def is_additive(score: Function) -> bool:
    """Whether a score is its first parameter plus something that does not depend on it."""
    moved = {score.params[0].name}
    depends = set(moved)
    for each in score.body:
        names = [value.name for value in each.operands]
        if not depends.intersection(names):
            continue
        depends.add(each.result.name)
        first = names[0] in moved and names[1:] and names[1] not in depends
        second = each.op == "add" and names[1:] and names[1] in moved and names[0] not in depends
        if each.op in _ADDING and (first or second):
            moved.add(each.result.name)
    return score.results[0].name in moved


@dataclass(frozen=True, slots=True, kw_only=True)
class _How:
    """What a call asks for beside the gradients of q, k and v."""

    request: Request
    deterministic: bool
    bias: Value | None
    """The bias whose gradient is wanted."""


def _bias(plan: AttentionPlan, binding: Binding) -> Value:
    """Return what the score adds as a bias.

    Raises:
        CkUnsupportedError: G008, that is not all it does, or the bias is not whole.
    """
    kernel = plan.kernel
    name = None if kernel.score is None else added_bias(kernel.score)
    at = next(iter(kernel.spans), None)
    if name is None:
        raise error("G008", at=at, name=plan.function.name, got="something else")
    value = kernel.reads[int(name.removeprefix("d"))]
    held = binding.arrays[value.name]
    q, k = binding.arrays[kernel.q.value.name], binding.arrays[kernel.k.value.name]
    batch, heads, rows = (q.shape[axis] for axis in kernel.q.perm[:3] if axis is not None)
    keys = k.shape[kernel.k.perm[2] or 0]
    whole = held.shape == (batch, heads, rows, keys) and held.strides[3] in (
        1,
        *((0,) * (keys < 2)),
    )
    if not whole or held.dtype != q.dtype:
        got = f"{held.dtype} {list(held.shape)} with strides {list(held.strides)}"
        raise error("G008", at=at, name=plan.function.name, got=got)
    return value


class _Stages:
    """The stages of one call. Temporaries: o, lse, d and the parts of the gradients."""

    def __init__(
        self,
        plan: AttentionPlan,
        binding: Binding,
        grad: Array,
        outs: Sequence[Array],
        spec: ArchSpec,
        how: _How,
    ) -> None:
        self.plan, self.binding, self.spec, self.how = plan, binding, spec, how
        kernel = plan.kernel
        expected = _storage(plan, binding)[kernel.o.name]
        if grad.shape != expected.shape or grad.dtype != expected.dtype:
            want = f"an array of {expected.dtype} of shape {expected.shape}"
            got = f"{grad.dtype} of shape {grad.shape}"
            raise error("K002", what="grad", want=want, got=got)
        self.case = case = _forward_case(plan, binding)
        p = case.problem
        self.key = self._selected().key
        self.grad = AttentionTensor(
            stride_batch=grad.strides[0], stride_head=grad.strides[1], stride_seq=grad.strides[2]
        )
        views = (kernel.q, kernel.k, kernel.v)
        self.outs = [
            _viewed(view, stored(name, out))
            for view, name, out in zip(views, _OUTS, outs, strict=False)
        ]
        self.parts = math.ceil(p.seqlen_k / self.key.algorithm.tile[1]) if how.deterministic else 1
        sizes = {
            "o": p.batch * p.heads * p.seqlen_q * p.hdim_v * case.signature.dtype_o.bytes,
            "lse": p.batch * p.heads * p.seqlen_q * _F32,
            "d": p.batch * p.heads * p.seqlen_q * _F32,
            "dq_parts": self.parts * p.batch * p.heads * p.seqlen_q * p.hdim_q * _F32,
            "dk_parts": p.batch * p.heads * p.seqlen_k * p.hdim_q * _F32,
            "dv_parts": p.batch * p.heads * p.seqlen_k * p.hdim_v * _F32,
        }
        self.temporaries = [max(size, _F32) for size in sizes.values()]
        extra = [] if how.bias is None else [_DBIAS]
        names = [*binding.arrays, _GRAD, *_OUTS, *extra, *sizes]
        self.slots = {name: place for place, name in enumerate(names)}
        self.sizes = sizes | dict.fromkeys(extra, outs[-1].size * outs[-1].dtype.bytes)

    def _selected(self) -> Selection[AttentionGradKey, AttentionGradCase]:
        wanted = self.how.bias is not None
        forward = self.case
        if wanted:
            # A bias that has a gradient is CK Tile's own, not an expression.
            signature = replace(forward.signature, score=ScoreKind.BIAS, score_function="")
            forward = replace(forward, signature=signature)
        case = AttentionGradCase(
            forward=forward, deterministic=self.how.deterministic, bias_grad=wanted
        )
        return find(case, self.spec, self._request(AttentionGradAlgorithm), self._functions)

    @property
    def _functions(self) -> AttentionFunctions:
        """What fills the kernel of the gradient."""
        functions = self.plan.kernel.functions
        return functions if self.how.bias is None else replace(functions, score=None)

    def _request(self, of: type[AttentionAlgorithm | AttentionGradAlgorithm]) -> Request:
        """Return what was asked, without an algorithm that is for the other direction."""
        named = self.how.request.algorithm
        return replace(self.how.request, algorithm=named if isinstance(named, of) else None)

    def steps(
        self,
        device: Device,
        build: Callable[[list[tuple[Any, AttentionFunctions]]], list[Artifact]],
    ) -> Iterator[Step]:
        """Yield the launches, every kernel built and loaded."""
        stages = list(self._stages())
        fixed = fixed_addresses(self.plan.kernel, self.binding, device)
        nothing = AttentionFunctions(score=None, mask=None)
        filled = {
            AttentionKey: self.plan.kernel.functions,
            AttentionGradKey: self._functions,
        }
        wanted = [(stage.key, filled.get(type(stage.key), nothing)) for stage in stages]
        values = Values(slots=self.slots, sizes=self.sizes, fixed=fixed)
        for stage, artifact in zip(stages, build(wanted), strict=True):
            yield launch_step(stage, artifact, device, values, self.case)

    def _stages(self) -> Iterator[Stage]:
        case, p, gpu = self.case, self.case.problem, self.spec.name
        signature = case.signature
        shared = p.heads // p.kv_heads
        if p.seqlen_q and p.seqlen_k:
            forward = self._forward_values()
            inputs = tuple(name for name in forward if name != "o")
            yield Stage(
                key=self._forward_key(),
                face=AttentionFace,
                values=forward,
                question=self._forward,
            )
            yield Stage(
                key=ReduceKey(True, signature.dtype_o, gpu),
                face=ReduceFace,
                values=("o", _GRAD, "d"),
                question=self._dot,
                # Tiles that no query sees are not written.
                zeroed="" if self.how.bias is None else _DBIAS,
            )
            extra = () if self.how.bias is None else (_DBIAS,)
            yield Stage(
                key=self.key,
                face=AttentionGradFace,
                values=(*inputs, _GRAD, "d", "dq_parts", "dk_parts", "dv_parts", *extra),
                question=self._gradient,
                zeroed="dq_parts",
            )
        total = ReduceKey(False, signature.dtype, gpu)
        rows = (p.seqlen_q, p.seqlen_k, p.seqlen_k)
        widths = (p.hdim_q, p.hdim_q, p.hdim_v)
        for place, name in enumerate(_OUTS):
            if not (rows[place] and widths[place] and p.batch and p.heads):
                continue
            # Without queries or keys there is nothing to add: the sum of no parts.
            parts = (self.parts if name == "dq" else shared) if p.seqlen_q and p.seqlen_k else 0
            yield Stage(
                key=total,
                face=ReduceFace,
                values=(f"{name}_parts", name),
                question=self._sum(place, rows[place], widths[place], parts),
            )

    def _forward_key(self) -> AttentionKey:
        request = replace(self._request(AttentionAlgorithm), splits=1)
        functions = self.plan.kernel.functions
        return select_attention(self.case, self.spec, request, functions).key

    def _forward_values(self) -> tuple[str, ...]:
        case = self.case
        return tuple(dict.fromkeys((*case.values.values(), *case.reads)))

    def _forward(self, at: Mapping[str, int]) -> Any:
        case = self.case
        found: dict[str, Any] = {}
        for name, value in case.values.items():
            held = getattr(case.problem, name)
            address = at.get(value, 0)
            found[name] = address if isinstance(held, int) else replace(held, pointer=address)
        operands: list[AttentionOperand] = [
            replace(operand, pointer=at[value])
            for operand, value in zip(case.problem.operands, case.reads, strict=True)
        ]
        p = case.problem
        o = _rows(p.heads * p.seqlen_q * p.hdim_v, p.seqlen_q * p.hdim_v, p.hdim_v)
        return replace(
            p, **(found | {"o": replace(o, pointer=at.get("o", 0))}), operands=tuple(operands)
        )

    def _dot(self, at: Mapping[str, int]) -> ReduceProblem:
        p = self.case.problem
        o = _rows(p.heads * p.seqlen_q * p.hdim_v, p.seqlen_q * p.hdim_v, p.hdim_v)
        d = _rows(p.heads * p.seqlen_q, p.seqlen_q, 1)
        return ReduceProblem(
            batch=p.batch,
            heads=p.heads,
            rows=p.seqlen_q,
            width=p.hdim_v,
            a=replace(o, pointer=at["o"]),
            b=replace(self.grad, pointer=at[_GRAD]),
            result=replace(d, pointer=at["d"]),
            factor=1.0 - p.dropout,
        )

    def _part(self, name: str) -> AttentionTensor:
        p = self.case.problem
        length = p.seqlen_q if name == "dq" else p.seqlen_k
        width = p.hdim_v if name == "dv" else p.hdim_q
        return _rows(p.heads * length * width, length * width, width)

    def _gradient(self, at: Mapping[str, int]) -> AttentionGradProblem:
        p = self.case.problem
        d = _rows(p.heads * p.seqlen_q, p.seqlen_q, 1)
        forward = self._forward(at)
        grad_bias = AttentionTensor()
        if self.how.bias is not None:
            name = self.how.bias.name
            strides = self.binding.arrays[name].strides
            forward = replace(forward, bias=replace(_rows(*strides[:3]), pointer=at[name]))
            rows = p.seqlen_q * p.seqlen_k
            place = _rows(p.heads * rows, rows, p.seqlen_k)
            grad_bias = replace(place, pointer=at[_DBIAS])
        return AttentionGradProblem(
            forward=forward,
            grad_bias=grad_bias,
            grad_o=replace(self.grad, pointer=at[_GRAD]),
            d=replace(d, pointer=at["d"]),
            grad_q=replace(self._part("dq"), pointer=at["dq_parts"]),
            grad_k=replace(self._part("dk"), pointer=at["dk_parts"]),
            grad_v=replace(self._part("dv"), pointer=at["dv_parts"]),
            stride_split_q=p.batch * p.heads * p.seqlen_q * p.hdim_q,
        )

    def _sum(
        self, place: int, rows: int, width: int, parts: int
    ) -> Callable[[Mapping[str, int]], ReduceProblem]:
        name = _OUTS[place]
        p = self.case.problem
        part = self._part(name)
        shared = 1 if name == "dq" else p.heads // p.kv_heads
        apart = p.batch * p.heads * rows * width if name == "dq" else part.stride_head

        def question(at: Mapping[str, int]) -> ReduceProblem:
            return ReduceProblem(
                batch=p.batch,
                heads=p.heads // shared,
                rows=rows,
                width=width,
                a=replace(part, pointer=at[f"{name}_parts"], stride_head=shared * part.stride_head),
                result=replace(self.outs[place], pointer=at[name]),
                count=parts,
                stride_part=apart,
            )

        return question


def _rows(batch: int, head: int, row: int) -> AttentionTensor:
    return AttentionTensor(stride_batch=batch, stride_head=head, stride_seq=row)


def _viewed(view: View, held: Storage) -> AttentionTensor:
    """Return the strides of a gradient's array as those of its side, batch, head and row."""
    batch, head, row, _ = (held.strides[axis] for axis in view.perm if axis is not None)
    return _rows(batch, head, row)
