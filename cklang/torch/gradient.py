# SPDX-License-Identifier: MIT
"""Gradients of custom ops: torch's autograd calls an op that computes them.

Which op that is says a function, such as ``ck.vjp``. An op that it has none for is an error where a
gradient is needed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch.autograd import forward_ad

from cklang.errors import CkError, error
from cklang.runtime.op_protocol import AnyOp


class BackwardOf(Protocol):
    """Gives the op that computes gradients, as ``ck.vjp`` does."""

    def __call__(self, op: Any, *, wrt: tuple[str, ...]) -> Any:
        """Return an op whose results are the gradients by the parameters ``wrt`` of ``op``.

        It takes the arguments of ``op`` and the gradient by each of its results of floats.
        """


class SavingPair(Protocol):
    """The two ops of a call that saves values, as :func:`cklang.vjp_saving` gives them."""

    def run(self, *args: Any, device: str | None) -> tuple[Any, tuple[Any, ...]]:
        """Return the results of the op, and what is saved."""

    def pull(self, args: Any, saved: Any, *grads: Any, device: str | None) -> Any:
        """Return the gradients."""


class SavingOf(Protocol):
    """Gives the two ops of a call that saves values; None if nothing is saved."""

    def __call__(
        self, op: Any, wrt: tuple[str, ...], values: Sequence[Any], device: str | None
    ) -> SavingPair | None:
        """Return them for the gradients by the parameters ``wrt`` of ``op``."""


_backward_of: BackwardOf | None = None
_saving_of: tuple[BackwardOf, SavingOf] | None = None
"""What gives backward ops, and what saves values for their gradients."""


def set_backward_of(function: BackwardOf | None) -> BackwardOf | None:
    """Say what gives the backward op of an op; return what did so before.

    Args:
        function: Takes an op and ``wrt``, the names of the parameters whose gradients are needed;
            returns an op. None: no op has a gradient.
    """
    global _backward_of
    before, _backward_of = _backward_of, function
    return before


def set_saving_of(function: BackwardOf, saving: SavingOf) -> None:
    """Say what decides which values calls save where ``function`` gives the backward ops."""
    global _saving_of
    _saving_of = function, saving


def backward_of(op: AnyOp, wrt: Sequence[str]) -> Any:
    """Return the op that computes the gradients of ``op`` by the parameters ``wrt``."""
    if _backward_of is None:
        raise _no_gradient(op, wrt)
    return _backward_of(op, wrt=tuple(wrt))


def _no_gradient(op: AnyOp, wrt: Sequence[str]) -> CkError:
    notes = [f"the op is {op.program.name}; it has no gradient"]
    return error("A005", name=wrt[0], notes=notes)


def autograd_kernel(op: AnyOp, custom: Any, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return what the dispatcher calls for a custom op on behalf of autograd.

    Where no gradient is needed and nobody traces, the kernel is called at once: another way through
    the dispatcher would take longer than the call.

    ``custom`` is its plain overload, ``kernel`` what computes it.
    """

    def run(keyset: Any, *values: Any, device: str | None = None) -> Any:
        if torch.is_grad_enabled() and torch._C._any_requires_grad(*values):
            return _Recorded.apply(op, custom, keyset, device, *values)  # type: ignore[no-untyped-call]
        if keyset.raw_repr() in _PLAIN:
            return kernel(*values, device=device)
        return _below_autograd(custom, keyset, values, device)

    return run


def _keys(*names: str) -> int:
    """Return the set of dispatch keys of tensors that are memory, as a number."""
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, names[0]))
    for name in names[1:]:
        keys = keys | torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, name))
    return int(keys.raw_repr())


_PLAIN = frozenset({_keys("CPU", "AutogradCPU"), _keys("CUDA", "AutogradCUDA")})


def _below_autograd(custom: Any, keyset: Any, values: Sequence[Any], device: str | None) -> Any:
    with torch._C._AutoDispatchBelowAutograd():
        keys = keyset & torch._C._after_autograd_keyset
        return custom.redispatch(keys, *values, device=device)


def _saving(
    op: Any, keyset: Any, values: Sequence[Any], needed: Sequence[bool], device: str | None
) -> SavingPair | None:
    """Return the ops of a call that saves values; None of a traced call, whose extents vary."""
    wrt = _names_needed(op, needed)
    if _saving_of is None or not wrt or keyset.raw_repr() not in _PLAIN:
        return None
    function, saving = _saving_of
    return saving(op, wrt, values, device) if _backward_of is function else None


def _detached(value: Any) -> Any:
    return value.detach() if isinstance(value, torch.Tensor) else value


def _names_needed(op: AnyOp, needed: Sequence[bool]) -> tuple[str, ...]:
    pairs = zip(op.program.parameters, needed, strict=False)
    return tuple(parameter.name for parameter, need in pairs if need)


class _Recorded(torch.autograd.Function):
    """A custom op that autograd records."""

    @staticmethod
    def forward(
        ctx: Any, op: AnyOp, custom: Any, keyset: Any, device: str | None, *values: Any
    ) -> Any:
        needed = ctx.needs_input_grad[_RECORDED:]
        pair = _saving(op, keyset, values, needed, device)
        if pair is None:
            _remember(op, ctx, values, needed, device)
            return _below_autograd(custom, keyset, values, device)
        result, kept = pair.run(*map(_detached, values), device=device)
        _remember(op, ctx, values, needed, device, Kept(pair, kept))
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (*(None,) * _RECORDED, *_differentiate(ctx, *grads))


_RECORDED = 4
"""What :class:`_Recorded` takes before the arguments of the op."""


def is_differentiated(values: Sequence[Any]) -> bool:
    """Whether a transform of ``torch.func`` differentiates a call, or it has dual tensors."""
    kinds = (torch._C._functorch.TransformType.Grad, torch._C._functorch.TransformType.Jvp)
    stack = torch._C._functorch.get_interpreter_stack()
    if stack:
        return any(level.key() in kinds for level in stack)
    return forward_ad._current_level >= 0 and any(map(_has_tangent, values))


def _has_tangent(value: Any) -> bool:
    if not isinstance(value, torch.Tensor):
        return False
    return forward_ad.unpack_dual(value).tangent is not None  # type: ignore[no-untyped-call]


def differentiated(op: AnyOp, custom: Any, values: Sequence[Any], device: str | None) -> Any:
    """Return the result of a custom op inside of such a transform.

    torch's own registrations of gradients do not know ``torch.func``.
    """
    return _Differentiated.apply(op, custom, device, *values)  # type: ignore[no-untyped-call]


_OPTIONS = 3
"""What :class:`_Differentiated` takes before the arguments of the op."""


class _Differentiated(torch.autograd.Function):
    """A custom op in the form that transforms of ``torch.func`` differentiate."""

    generate_vmap_rule = True

    @staticmethod
    def forward(_op: AnyOp, custom: Any, device: str | None, *values: Any) -> Any:
        return custom(*values, device=device)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        op, _, device, *values = inputs
        results = output if isinstance(output, tuple) else (output,)
        ctx.mark_non_differentiable(
            *(result for result in results if not result.is_floating_point())
        )
        _remember(op, ctx, values, ctx.needs_input_grad[_OPTIONS:], device)
        # The same for both: torch.vmap notes the batch axes of what was saved last.
        saved = (*(value for value in values if isinstance(value, torch.Tensor)), *results)
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (*(None,) * _OPTIONS, *_differentiate(ctx, *grads))

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        values, saved = list(ctx.others), ctx.saved_tensors
        count = len(ctx.tensors)
        for index, tensor in zip(ctx.tensors, saved, strict=False):
            values[index] = tensor
        arguments = dict(zip(ctx.names, values, strict=True))
        pairs = zip(ctx.names, tangents[_OPTIONS:], strict=True)
        moving = {name: tangent for name, tangent in pairs if tangent is not None}
        results = _pushed(ctx.op, arguments, moving, saved[count:], ctx.device)
        return tuple(results) if len(results) > 1 else results[0]


def _pushed(
    op: AnyOp,
    arguments: Mapping[str, Any],
    tangents: Mapping[str, torch.Tensor],
    results: Sequence[torch.Tensor],
    device: str | None,
) -> list[torch.Tensor | None]:
    """Return the tangent of each result of a call; None of integers.

    The gradient is linear in the gradient dy by the result: it is J' dy. The gradient of that by
    dy, from the tangents u of the arguments, is J u.

    ``tangents`` are those of some arguments.
    """
    backward = backward_of(op, tuple(tangents))
    by_results = [parameter.name for parameter in backward.program.parameters[len(arguments) :]]
    forward = backward_of(backward, by_results)
    by_gradients = forward.program.parameters[len(arguments) + len(by_results) :]
    zeros = (torch.zeros_like(result) for result in results if result.is_floating_point())
    values = {
        **arguments,
        **dict(zip(by_results, zeros, strict=True)),
        **{
            by_gradient.name: u
            for by_gradient, u in zip(by_gradients, tangents.values(), strict=True)
        },
    }
    moved = forward(**values, device=device)
    floats = iter(moved if isinstance(moved, tuple) else (moved,))
    return [next(floats) if result.is_floating_point() else None for result in results]


class Kept(NamedTuple):
    """What a call saved for its gradient."""

    pair: SavingPair
    values: tuple[torch.Tensor, ...]


def _remember(
    op: AnyOp,
    ctx: Any,
    values: Sequence[Any],
    needed: Sequence[bool],
    device: str | None,
    kept: Kept | None = None,
) -> None:
    """Keep on ``ctx`` what the gradients by the needed arguments are computed from."""
    ctx.names = tuple(parameter.name for parameter in op.program.parameters)
    ctx.wrt = _names_needed(op, needed)
    if ctx.wrt and _backward_of is None:
        raise _no_gradient(op, ctx.wrt)
    # The backward op is asked for when it is called: torch.func prepares second derivatives too,
    # which few programs take.
    ctx.op = op
    ctx.device = device
    is_tensor = [isinstance(value, torch.Tensor) for value in values]
    pairs = list(zip(values, is_tensor, strict=True))
    ctx.others = tuple(None if tensor else value for value, tensor in pairs)
    ctx.tensors = tuple(index for index, tensor in enumerate(is_tensor) if tensor)
    ctx.pair = None if kept is None else kept.pair
    more = () if kept is None else kept.values
    ctx.save_for_backward(*(value for value, tensor in pairs if tensor), *more)


def _differentiate(ctx: Any, *grads: Any) -> tuple[Any, ...]:
    """Return a gradient, or None, for each argument of the op."""
    values = list(ctx.others)
    count = len(ctx.tensors)
    # Once: torch.utils.checkpoint computes saved tensors again when they are asked for, and once.
    saved = ctx.saved_tensors
    for index, tensor in zip(ctx.tensors, saved[:count], strict=True):
        values[index] = tensor
    floats = [grad for grad in grads if grad is not None and grad.is_floating_point()]
    # A second derivative is by the arguments, and saved values do not depend on them.
    if ctx.pair is not None and not torch.is_grad_enabled():
        own = map(_detached, values)
        results = ctx.pair.pull(own, saved[count:], *floats, device=ctx.device)
    else:
        results = _by_backward_op(ctx, values, floats)
    results = results if isinstance(results, tuple) else (results,)
    by_name = dict(zip(ctx.wrt, results, strict=True))
    return tuple(map(by_name.get, ctx.names))


def _by_backward_op(ctx: Any, values: Sequence[Any], grads: Sequence[Any]) -> Any:
    """Return the gradients of a call from its arguments."""
    arguments = dict(zip(ctx.names, values, strict=True))
    backward_op = backward_of(ctx.op, ctx.wrt)
    cotangents = backward_op.program.parameters[len(values) :]
    more = {cotangent.name: grad for cotangent, grad in zip(cotangents, grads, strict=True)}
    return backward_op(**arguments, **more, device=ctx.device)
