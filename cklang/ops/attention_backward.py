# SPDX-License-Identifier: MIT
"""The kernels of ``ck.attention_grad``: the gradients of an op that is an attention."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from cklang.arch import ArchSpec
from cklang.device import arrays, device_array
from cklang.errors import error
from cklang.families import family_of
from cklang.families.attention.helper_keys import reduce_key
from cklang.families.attention.key import AttentionAlgorithm
from cklang.families.attention.plan import FusedAttention
from cklang.families.attention.problem import AttentionCase, AttentionGradCase
from cklang.families.attention.variants import added_bias, read_bias
from cklang.families.attention_backward.key import AttentionGradAlgorithm
from cklang.families.attention_backward.stages import (
    GRAD,
    AddedBias,
    GradientOptions,
    GradientStages,
    forward_case,
    gradient_of,
)
from cklang.families.attention_backward.stages import GradientKind as GradientKind
from cklang.families.grid import Pattern
from cklang.families.protocol import SelectionLike
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.functions import NO_FUNCTIONS, Functions
from cklang.fusion.plan import AnyKernel, Plan
from cklang.ir.views import has_views
from cklang.keys import KernelSignature
from cklang.runtime.bind import Binding, ResultLayout
from cklang.runtime.call_plan import CallPlan, access_range
from cklang.runtime.op_protocol import AnyOp, AnyPlannedOp
from cklang.runtime.planner import call_plan, memory_of, numbers_of
from cklang.selection.context import current, device_named
from cklang.selection.registry import Registry
from cklang.selection.request import Request
from cklang.selection.select import AnySelection, find


class Gradients(NamedTuple):
    """What :func:`cklang.attention_grad` returns: an array like each of the op's."""

    q: Any
    k: Any
    v: Any
    bias: Any = None
    """None unless it was asked for."""


def gradients(
    op: AnyOp,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    grad: Any,
    kind: GradientKind,
    device: str | None,
) -> Gradients:
    """Return the gradients of an attention by the kernels for that: :func:`cklang.attention_grad`.

    Raises:
        CkError: What :func:`cklang.attention_grad` raises.
    """

    def planned(binding: Binding, named: str | None) -> tuple[CallPlan, tuple[ResultLayout, ...]]:
        planned = plan_gradients(op, binding, grad, kind, named)
        return planned.call, planned.layouts

    more = {GRAD: grad}
    return Gradients(*op._derived(args, kwargs, what=kind, plan=planned, more=more, device=device))


def read_as_bias(op: AnyOp, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parameters that are q, k, v and what the score reads as a bias.

    Empty if the score only adds it, which one kernel serves, or if they are no four parameters.
    """
    binding = op._bound(args, kwargs)
    kernel = _attention_of(plan_of_gradients(op, binding))
    if kernel.score is None or kernel.starts or added_bias(kernel.score) is not None:
        return ()
    bias = read_bias(kernel.score)
    if bias is None:
        return ()
    values = [kernel.q.value, kernel.k.value, kernel.v.value]
    values.append(kernel.reads[int(bias.removeprefix("d"))])
    names = tuple(value.name for value in values)
    return names if set(names) <= binding.arrays.keys() and len(set(names)) == len(names) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedGradients:
    """All launches of the gradients of one call, with its extents, strides and dtypes."""

    call: CallPlan
    """Its addresses are those of the arguments, of the gradient of o, and of the results."""
    selection: SelectionLike
    """The kernel that gives the parts."""
    layouts: tuple[ResultLayout, ...]
    """The results: dq, dk, dv, and dbias if it is asked for."""
    bias: AddedBias | None
    """The bias whose gradient is dbias."""


def plan_gradients(
    op: AnyOp, binding: Binding, grad: Any, kind: GradientKind, device: str | None
) -> PlannedGradients:
    """Choose, build and load the kernels of :func:`cklang.attention_grad` for a bound call.

    Raises:
        CkError: What :func:`cklang.attention_grad` raises.
    """
    from cklang.build.builder import shared_builder
    from cklang.device.device import open_device

    plan = plan_of_gradients(op, binding)
    target_device = open_device(device_named(device, current()), binding.place)
    grad_array = arrays.read(GRAD, grad)
    if grad_array.place != binding.place:
        there, here = (
            device_array.place_name(grad_array.place),
            device_array.place_name(binding.place),
        )
        where = f"{GRAD} on {there}, the others on {here}"
        raise error("A026", where=where)
    added = bias_of(plan, binding) if kind.bias else None
    values = [getattr(_attention_of(plan), side).value for side in "qkv"]
    likes = [binding.arrays[value.name] for value in (*values, *([added.value] if added else []))]
    results = tuple(ResultLayout(shape=like.shape, dtype=like.dtype) for like in likes)
    outs = [
        arrays.planned(layout.shape, layout.dtype, binding.library, binding.place)
        for layout in results
    ]
    how = _how(op.request, target_device.spec, kind, added)
    layouts = memory_of(plan, binding, None).layouts
    kernel = _attention_of(plan)
    stages = GradientStages(
        kernel,
        layouts,
        binding.arrays,
        binding.dims,
        grad_array,
        outs,
        target_device.spec,
        how,
        numbers_of(plan.function, binding.dims),
    )
    pieces = [
        access_range(array, written=False) for array in (*binding.arrays.values(), grad_array)
    ]
    pieces += [access_range(out, written=True) for out in outs]
    call = call_plan(
        list(stages.stages()),
        list(stages.slots),
        pieces,
        {},
        target_device,
        shared_builder(),
        binding.place,
        len(outs),
    )
    return PlannedGradients(call=call, selection=stages.selection, layouts=results, bias=added)


def _how(
    request: Request, spec: ArchSpec, kind: GradientKind, bias: AddedBias | None
) -> GradientOptions:
    """Return how the two kernels are chosen; an algorithm is for the direction of its class."""

    def forward(problem: AttentionCase, functions: Functions) -> AnySelection:
        own = replace(request.only(AttentionAlgorithm), splits=1)
        return find(problem, spec, own, functions)

    def gradient(problem: AttentionGradCase, functions: Functions) -> AnySelection:
        return find(problem, spec, request.only(AttentionGradAlgorithm), functions)

    return GradientOptions(forward=forward, gradient=gradient, kind=kind, bias=bias)


def _attention_of(plan: Plan) -> FusedAttention:
    """Return the one kernel of a plan, which is an attention."""
    (kernel,) = plan.kernels
    return attention_of(kernel)


def attention_of(kernel: AnyKernel) -> FusedAttention:
    """Return a kernel that is an attention.

    Raises:
        CkInternalError: Z002, it is none.
    """
    if not isinstance(kernel, FusedAttention):
        raise error("Z002", what=f"{kernel.name} is taken for an attention")
    return kernel


def gradient_problem(
    kernel: AnyKernel,
    layouts: Mapping[str, TensorLayout],
    dims: Mapping[str, int],
    kind: GradientKind,
) -> AttentionGradCase:
    """Return the problem of an attention's gradients."""
    return gradient_of(forward_case(attention_of(kernel), layouts, dims), kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedGradients:
    """All launches of the gradients of one call with host arrays, to run again and again."""

    call: CallPlan
    addresses: tuple[int, ...]
    results: Gradients
    selection: SelectionLike
    """The kernel that gives the parts."""
    bias: AddedBias | None
    """The bias whose gradient is computed."""
    operands: tuple[Any, ...]
    """What must live as long as the addresses are used."""

    def run(self) -> None:
        """Launch everything, and wait for it."""
        self.call.run(list(self.addresses), None)


def prepare_gradients(
    op: AnyOp,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    grad: Any,
    kind: GradientKind,
    device: str | None,
) -> PreparedGradients:
    """Choose, build and load the kernels of :func:`gradients`, and make room for the results.

    Arrays are in host memory.

    Raises:
        CkError: What :func:`cklang.attention_grad` raises.
    """
    binding = op._bound(args, kwargs)
    planned = plan_gradients(op, binding, grad, kind, device)
    results = [
        device_array.maker(layout.shape, layout.dtype, binding.library, binding.place)()
        for layout in planned.layouts
    ]
    operands = [*binding.arrays.values(), arrays.read(GRAD, grad)]
    addresses = [
        operand.pointer for operand in (*operands, *(arrays.read("result", m) for m in results))
    ]
    return PreparedGradients(
        call=planned.call,
        addresses=tuple(addresses),
        results=Gradients(*results),
        selection=planned.selection,
        bias=planned.bias,
        operands=tuple(operands),
    )


def declare_gradients(
    op: AnyPlannedOp,
    binding: Binding,
    registry: Registry,
    gpu: str,
    among: Pattern | str | None,
    priority: int,
    bias: bool = False,
) -> int:
    """Declare the kernels of a bound op's gradients, deterministic and not; count the new ones.

    Args:
        op: An op that :func:`cklang.attention_grad` takes.
        binding: A call of it.
        registry: Where.
        gpu: The GPU: ``gfx942``.
        among: As in :meth:`cklang.dispatch.Registry.declare`; a pattern is for the direction of its
            class, and the other one gets the default preset.
        priority: Of these kernels.
        bias: Whether the gradient of the bias is one of them.

    Raises:
        CkUnsupportedError: G007, it has no gradient; G008, its bias has none.
        CkValueError: As :meth:`cklang.dispatch.Registry.declare`.
    """
    plan = plan_of_gradients(op, binding)
    forward = forward_case(
        _attention_of(plan), memory_of(plan, binding, None).layouts, binding.dims
    )
    if bias:
        bias_of(plan, binding)
    wanted: list[tuple[KernelSignature, Functions]] = [(forward.signature, forward.functions)]
    for deterministic in (False, True):
        case = gradient_of(forward, GradientKind(deterministic=deterministic, bias=bias))
        wanted.append((case.signature, case.functions))
    new = 0
    for signature, functions in wanted:
        other = isinstance(among, Pattern) and among.of is not family_of(signature).algorithm
        some = None if other else among
        new += registry.declare(signature, functions, gpu, some, priority=priority)
    dtype = forward.signature.dtype
    sums = [reduce_key(gpu, forward.signature.dtype_o, dot=True), reduce_key(gpu, dtype)]
    if bias:  # of one that several scores share
        sums.append(reduce_key(gpu, dtype, parts=dtype))
    for key in sums:
        new += registry.add(key, NO_FUNCTIONS, priority=priority)
    return new


def plan_of_gradients(op: AnyPlannedOp, binding: Binding) -> Plan:
    """Return the plan of an op that has a gradient.

    Raises:
        CkUnsupportedError: G007, it has none.
    """
    plan = op._planned(binding)
    kernel = plan.kernels[0]
    is_alone = len(plan.kernels) == 1 and not has_views(plan.function)
    if not is_alone or not isinstance(kernel, FusedAttention) or _is_more(kernel):
        raise error("G007", name=op.program.name)
    return plan


def expect_gradient(op: AnyPlannedOp, binding: Binding, kind: GradientKind) -> None:
    """Check that a bound op has gradients of a kind.

    Raises:
        CkUnsupportedError: G007, it has none; G008, its bias has none.
    """
    plan = plan_of_gradients(op, binding)
    if kind.bias:
        bias_of(plan, binding)


def _is_more(kernel: FusedAttention) -> bool:
    """Tell whether a kernel does what the backward ones do not know."""
    return bool(kernel.lengths or kernel.pages or kernel.output or kernel.min_queries)


def bias_of(plan: Plan, binding: Binding) -> AddedBias:
    """Return what the score adds as a bias.

    Raises:
        CkUnsupportedError: G008, that is not all it does, or the kernel reads no such bias.
    """
    kernel = _attention_of(plan)
    at = next(iter(kernel.spans), None)
    bias = None if kernel.score is None else added_bias(kernel.score)
    if bias is None:
        raise error("G008", at=at, name=plan.function.name, got="something else")
    if kernel.starts:
        raise error("G008", at=at, name=plan.function.name, got="one to packed sequences")
    name, indices = bias
    value = kernel.reads[int(name.removeprefix("d"))]
    array = binding.arrays[value.name]
    q, k = binding.arrays[kernel.q.value.name], binding.arrays[kernel.k.value.name]
    full = dict(zip("bhi", (q.shape[axis or 0] for axis in kernel.q.perm[:3]), strict=True))
    full["j"] = k.shape[kernel.k.perm[2] or 0]
    extents = dict(zip(indices, array.shape, strict=True))
    covers_keys = extents["j"] == full["j"] and (full["j"] < 2 or array.strides[-1] == 1)
    fits = all(extents[index] in (1, full[index]) for index in indices)
    if not (covers_keys and fits) or array.dtype != q.dtype:
        got = f"{array.dtype} {list(array.shape)} with strides {list(array.strides)}"
        raise error("G008", at=at, name=plan.function.name, got=got)
    axes = tuple(
        indices.index(name) if extents.get(name, 0) == full[name] else None for name in "bhi"
    )
    return AddedBias(value=value, axes=axes)
