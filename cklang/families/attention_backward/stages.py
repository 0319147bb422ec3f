# SPDX-License-Identifier: MIT
"""The stages that give the gradients of one call, with the memory between them.

==========  ==============================================  ======================================
stage       gives                                           reads
==========  ==============================================  ======================================
copies      q, k and v that the program transposes          the operands
forward     o and lse                                       q, k, v
dot         d, o times its gradient summed along the head   o, grad
gradient    the parts of dq, dk and dv in f32; dbias        q, k, v, grad, lse, d
sums        dq, dk and dv, rounded once; dbias of a bias    the parts
            that several scores share
copies      gradients of transposed operands, as these lie  dq, dk and dv
==========  ==============================================  ======================================

Packed sequences are one batch to all stages but the two that know where each begins.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from cklang.arch import ArchSpec
from cklang.autodiff.transform import score_derivative
from cklang.device.arrays import Array, alignment_of
from cklang.device.host_shim import HostShim
from cklang.errors import error
from cklang.families.attention.copies import insert_head_copies
from cklang.families.attention.helper_keys import reduce_key
from cklang.families.attention.host import (
    AttentionGradProblem,
    AttentionGradShim,
    AttentionProblem,
    AttentionShim,
    AttentionTensor,
    ReduceProblem,
    ReduceShim,
)
from cklang.families.attention.key import ScoreKind
from cklang.families.attention.pipelines import parts_of_dq
from cklang.families.attention.plan import FusedAttention
from cklang.families.attention.problem import AttentionCase, AttentionGradCase, case_of, result_view
from cklang.families.attention_backward.parts import (
    batch_of,
    forward_at,
    gradient_at,
    rows_of,
    sizes_of,
    sum_at,
)
from cklang.families.layout_copy.plan import LayoutCopy
from cklang.families.protocol import SelectionLike
from cklang.families.stage import Stage
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.functions import NO_FUNCTIONS, Functions
from cklang.ir.nodes import Function, Value
from cklang.keys import AnyKey
from cklang.types import f32

GRAD = "grad"
OUTS = ("dq", "dk", "dv")
DBIAS = "dbias"
_F32 = f32.bytes
_WHY = "so that the elements of a head are contiguous"
_WHY_BACK = "so that a gradient lies as its operand does"
_PARTS = "dbias_parts"
_AXES = ("b", "h", "i")


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedBias:
    """The bias whose gradient is wanted, and which of its axes the scores share."""

    value: Value
    axes: tuple[int | None, ...]
    """Its axis for each of batch, head and query; None if all have the same."""

    def tensor(self, array: Array) -> AttentionTensor:
        """Return an array as scores have it, along batch, head and query."""
        return AttentionTensor.of(array.strides, self.axes)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientKind:
    """What is asked for beside the gradients of q, k and v."""

    deterministic: bool = False
    """Whether dq is the same each time."""
    bias: bool = False
    """Whether the gradient of the bias too."""


Select: TypeAlias = Callable[[Any, Functions], SelectionLike]


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientOptions:
    """The same of a bound call, and how its kernels are chosen."""

    forward: Select
    """Selects the forward kernel of a problem, in one split."""
    gradient: Select
    """Selects the kernel of the gradients."""
    kind: GradientKind
    bias: AddedBias | None


def forward_case(
    kernel: FusedAttention, layouts: Mapping[str, TensorLayout], dims: Mapping[str, int]
) -> AttentionCase:
    """Return the forward problem of the gradients: with lse, o and lse in new memory.

    What the program transposes is a copy whose heads are contiguous.
    """
    # Backward kernels call the score and its derivative as expressions.
    placed = insert_head_copies(kernel.as_written, layouts)
    case = case_of(placed.kernel, placed.storage, dims)
    p = case.problem
    return replace(
        case,
        signature=replace(case.signature, lse=True),
        problem=replace(p, lse=rows_of(p.heads * p.seqlen_q, p.seqlen_q, 1)),
        values=of_caller(case.values) | {"o": "o", "lse": "lse"},
        reads=tuple(of_caller({name: name for name in case.reads}).values()),
    )


def of_caller(values: Mapping[str, str]) -> dict[str, str]:
    """Return names of the caller's values as the stages have them: none of their own is so."""
    return {key: f"%{name}" for key, name in values.items()}


def grad_case(
    forward: AttentionCase, deterministic: bool, bias_grad: bool, derivative: Function | None = None
) -> AttentionGradCase:
    """Return the problem of the kernel that gives the parts of the gradients."""
    if bias_grad and derivative is None:
        # A bias that has a gradient is CK Tile's own, not an expression.
        signature = replace(forward.signature, score=ScoreKind.BIAS)
        forward = replace(forward, signature=signature)
    return AttentionGradCase(
        forward=forward, deterministic=deterministic, bias_grad=bias_grad, derivative=derivative
    )


def gradient_of(forward: AttentionCase, kind: GradientKind) -> AttentionGradCase:
    """Return the problem of the kernel of ``ck.attention_grad``, with the score's derivative."""
    score = forward.functions.get("score")
    derivative = None if score is None else score_derivative(score)
    return grad_case(forward, kind.deterministic, kind.bias, derivative)


class GradientStages:
    """The stages of one call. Temporaries: o, lse, d and the parts of the gradients."""

    def __init__(
        self,
        kernel: FusedAttention,
        layouts: Mapping[str, TensorLayout],
        arrays: Mapping[str, Array],
        dims: Mapping[str, int],
        grad: Array,
        outs: Sequence[Array],
        spec: ArchSpec,
        how: GradientOptions,
        extents: Mapping[str, int | range],
    ) -> None:
        self.kernel, self.arrays, self.spec, self.how = kernel, arrays, spec, how
        self.numbers = {**dict(kernel.constants), **extents}
        expected = layouts[kernel.o.name]
        if grad.shape != expected.shape or grad.dtype != expected.dtype:
            raise error(
                "A060",
                name=GRAD,
                dtype=grad.dtype,
                shape=grad.shape,
                want_dtype=expected.dtype,
                want_shape=expected.shape,
            )
        self.case = case = forward_case(kernel, layouts, dims)
        self.selection = self._selected()
        self.key = self.selection.key
        self.grad = AttentionTensor.of(grad.strides, result_view(kernel.o).perm[:3])
        placed = insert_head_copies(kernel, layouts)
        self.copies = [_of_caller(copy) for copy in placed.before]
        views = (kernel.q, kernel.k, kernel.v)
        results = list(zip(OUTS, views, outs, strict=False))
        self.copies_back = {
            name: _copy_back(name, placed.places[view.value.name], out)
            for name, view, out in results
            if view.value.name in placed.origins.values()
        }
        self.outs = [
            AttentionTensor.of(
                self.copies_back[name].source_strides if name in self.copies_back else out.strides,
                view.perm[:3],
            )
            for name, view, out in results
        ]
        self.dbias = outs[-1]
        p = case.problem
        self.batch = batch_of(case)
        self.parts = parts_of_dq(self.key, p.seqlen_k)
        sizes = sizes_of(case, self.parts)
        if self._of_bias == _PARTS:
            sizes[_PARTS] = math.prod(self._scores) * p.seqlen_k * case.signature.dtype.bytes
        sizes |= {copy.target: copy.size for copy in self.copies}
        sizes |= {copy.source: copy.size for copy in self.copies_back.values()}
        self.temporaries = {name: max(size, _F32) for name, size in sizes.items()}
        extra = [] if how.bias is None else [DBIAS]
        self.names = of_caller({name: name for name in arrays})
        names = [*self.names.values(), GRAD, *OUTS, *extra]
        self.slots = {name: place for place, name in enumerate(names)}
        """The places of the addresses of a call."""
        self.sizes = sizes | dict.fromkeys(extra, self.dbias.size * self.dbias.dtype.bytes)

    @property
    def _scores(self) -> tuple[int, int, int]:
        """Batch, heads and queries."""
        p = self.case.problem
        return p.batch, p.heads, p.seqlen_q

    @property
    def _of_bias(self) -> str:
        """Where the gradient of each score's bias is left: in the result, if no two share one."""
        bias = self.how.bias
        if bias is None:
            return ""
        pairs = zip(bias.axes, self._scores, strict=True)
        return _PARTS if any(axis is None and n != 1 for axis, n in pairs) else DBIAS

    @property
    def _computes(self) -> bool:
        """Whether there is a score at all."""
        return self.case.has_scores

    def _selected(self) -> SelectionLike:
        case = gradient_of(self.case, self.how.kind)
        return self.how.gradient(case, case.functions)

    def stages(self) -> Iterator[Stage]:
        """Yield the launches."""
        known = of_caller({name: name for name in self.numbers}) | self.names
        numbers = self.numbers | {
            value.name: 0
            for value in self.kernel.reads
            if value.name in self.arrays and 0 in self.arrays[value.name].shape
        }
        constants = {known[name]: number for name, number in numbers.items()}
        for stage in self._stages():
            used = {name: n for name, n in constants.items() if name in stage.values}
            sizes = self.temporaries | {name: self.sizes.get(name, 0) for name in stage.zeroed}
            yield replace(stage, constants=used, temporaries=sizes)

    def _stages(self) -> Iterator[Stage]:
        if self._computes:
            for copy in self.copies:
                yield from copy.stages(self.spec, _WHY)
            yield from self._main_stages()
        case, p, gpu = self.case, self.case.problem, self.spec.name
        total = reduce_key(gpu, case.signature.dtype)
        shared = p.heads // p.kv_heads if p.kv_heads else 1
        rows = (p.seqlen_q, p.seqlen_k, p.seqlen_k)
        widths = (p.hdim_q, p.hdim_q, p.hdim_v)
        for place, name in enumerate(OUTS):
            if not (rows[place] and widths[place] and self.batch and p.heads):
                continue
            # Without queries or keys there is nothing to add: the sum of no parts.
            parts = (self.parts if name == "dq" else shared) if self._computes else 0
            back = self.copies_back.get(name)
            target = name if back is None else back.source
            yield self._stage(
                key=total,
                shim=ReduceShim,
                values=(f"{name}_parts", target),
                written=(target,),
                request=self._sum(place, parts, target),
            )
            if back is not None:
                yield from back.stages(self.spec, _WHY_BACK)
        if self._of_bias == _PARTS and self.dbias.size:
            dtype = case.signature.dtype
            yield self._stage(
                key=reduce_key(gpu, dtype, parts=dtype),
                shim=ReduceShim,
                values=(_PARTS, DBIAS),
                written=(DBIAS,),
                request=self._sum_bias,
            )

    def _stage(
        self,
        key: AnyKey,
        shim: type[HostShim[Any]],
        values: tuple[str, ...],
        request: Callable[[Mapping[str, int]], Any],
        written: tuple[str, ...],
        functions: Functions = NO_FUNCTIONS,
        zeroed: tuple[str, ...] = (),
    ) -> Stage:
        def request_at(addresses: Sequence[int]) -> Any:
            return request(dict(zip(values, addresses, strict=False)))

        return Stage(
            key=key,
            functions=functions,
            problem=self.case,
            shim=shim,
            values=values,
            written=frozenset(written),
            request=request_at,
            zeroed=zeroed,
        )

    def _main_stages(self) -> Iterator[Stage]:
        signature, gpu = self.case.signature, self.spec.name
        forward = tuple(dict.fromkeys((*self.case.values.values(), *self.case.reads)))
        inputs = tuple(name for name in forward if name != "o")
        extra = () if self.how.bias is None else (self._of_bias,)
        chosen = self.how.forward(self.case, self.case.functions)
        yield self._stage(
            key=chosen.key,
            shim=AttentionShim,
            values=forward,
            written=("o", "lse"),
            request=self._forward,
            functions=chosen.functions,
        )
        yield self._stage(
            key=reduce_key(gpu, signature.dtype_o, dot=True),
            shim=ReduceShim,
            values=("o", GRAD, "d"),
            written=("d",),
            request=self._dot,
            # Tiles that no query sees are not written.
            zeroed=(self._of_bias,) if self._of_bias else (),
        )
        yield self._stage(
            key=self.key,
            shim=AttentionGradShim,
            values=(*inputs, GRAD, "d", "dq_parts", "dk_parts", "dv_parts", *extra),
            written=("dq_parts", "dk_parts", "dv_parts", *extra),
            functions=self.selection.functions,
            request=self._gradient,
            zeroed=("dq_parts",),
        )

    def _forward(self, at: Mapping[str, int]) -> AttentionProblem:
        return forward_at(self.case, at)

    def _dot(self, at: Mapping[str, int]) -> ReduceProblem:
        p = self.case.problem
        o = rows_of(p.heads * p.seqlen_q * p.hdim_v, p.seqlen_q * p.hdim_v, p.hdim_v)
        d = rows_of(p.heads * p.seqlen_q, p.seqlen_q, 1)
        return ReduceProblem(
            batch=self.batch,
            heads=p.heads,
            rows=p.seqlen_q,
            width=p.hdim_v,
            a=replace(o, pointer=at["o"]),
            b=replace(self.grad, pointer=at[GRAD]),
            result=replace(d, pointer=at["d"]),
            factor=1.0 - p.dropout,
        )

    def _gradient(self, at: Mapping[str, int]) -> AttentionGradProblem:
        problem = gradient_at(self.case, replace(self.grad, pointer=at[GRAD]), at)
        bias = self.how.bias
        if bias is None:
            return problem
        name = bias.value.name
        bias_tensor = replace(bias.tensor(self.arrays[name]), pointer=at[self.names[name]])
        return replace(
            problem,
            forward=replace(problem.forward, bias=bias_tensor),
            grad_bias=replace(self._bias_place(bias), pointer=at[self._of_bias]),
        )

    def _bias_place(self, bias: AddedBias) -> AttentionTensor:
        """Return where the gradient of each score's bias is: what is shared varies slowest."""
        if self._of_bias == DBIAS:
            return bias.tensor(self.dbias)
        strides, size = [0, 0, 0], self.case.problem.seqlen_k
        for shared in (False, True):
            for place in reversed(range(len(_AXES))):
                if (bias.axes[place] is None) == shared:
                    strides[place] = size
                    size *= self._scores[place]
        return rows_of(*strides)

    def _sum_bias(self, at: Mapping[str, int]) -> ReduceProblem:
        bias = self.how.bias
        if bias is None:
            raise error("Z002", what="a sum of the gradients of no bias")
        own = [1 if a is None else n for a, n in zip(bias.axes, self._scores, strict=True)]
        place, keys = self._bias_place(bias), self.case.problem.seqlen_k
        return ReduceProblem(
            batch=own[0],
            heads=own[1],
            rows=own[2],
            width=keys,
            a=replace(place, pointer=at[_PARTS]),
            result=replace(bias.tensor(self.dbias), pointer=at[DBIAS]),
            count=math.prod(self._scores) // math.prod(own),
            stride_part=math.prod(own) * keys,
        )

    def _sum(
        self, place: int, parts: int, target: str
    ) -> Callable[[Mapping[str, int]], ReduceProblem]:
        name = OUTS[place]

        def question(at: Mapping[str, int]) -> ReduceProblem:
            result = replace(self.outs[place], pointer=at[target])
            return sum_at(self.case, name, parts, result, at)

        return question


def _of_caller(copy: LayoutCopy) -> LayoutCopy:
    """Return a copy of a value of the caller's, by its name in the stages."""
    source, target = of_caller({"source": copy.source, "target": copy.target}).values()
    return replace(copy, source=source, target=target)


def _copy_back(name: str, lies: TensorLayout, out: Array) -> LayoutCopy:
    """Return the copy of a gradient whose heads are contiguous to the place of a result."""
    return LayoutCopy(
        source=f"{name}_by_heads",
        target=name,
        shape=out.shape,
        bytes=out.dtype.bytes,
        source_strides=lies.strides,
        target_strides=out.strides,
        source_alignment=lies.alignment,
        target_alignment=alignment_of(out.pointer),
    )
