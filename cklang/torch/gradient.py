# SPDX-License-Identifier: MIT
"""Gradients of custom ops: torch's autograd calls an op that computes them.

Which op that is says a function, such as ``ck.vjp``. An op that it has none for is an error where a
gradient is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch

from cklang.errors import error
from cklang.runtime.op_protocol import AnyOp

__all__ = ["BackwardOf", "backward_of", "expect_gradient", "register_backward", "set_backward_of"]


class BackwardOf(Protocol):
    """Gives the op that computes gradients, as ``ck.vjp`` does."""

    def __call__(self, op: Any, *, wrt: tuple[str, ...]) -> Any:
        """Return an op whose results are the gradients by the parameters ``wrt`` of ``op``.

        It takes the arguments of ``op`` and the gradient by each of its results of floats.
        """


_backward_of: BackwardOf | None = None


def set_backward_of(function: BackwardOf | None) -> BackwardOf | None:
    """Say what gives the backward op of an op; return what did so before.

    Args:
        function: Takes an op and ``wrt``, the names of the parameters whose gradients are needed;
            returns an op. None: no op has a gradient.
    """
    global _backward_of
    before, _backward_of = _backward_of, function
    return before


def backward_of(op: AnyOp, wrt: Sequence[str]) -> Any:
    """Return the op that computes the gradients of ``op`` by the parameters ``wrt``.

    Raises:
        CkValueError: A005, nothing gives one.
        CkError: What the function of :func:`set_backward_of` raises.
    """
    if _backward_of is None:
        raise error("A005", name=wrt[0], notes=[f"the op is {op.program.name}; it has no gradient"])
    return _backward_of(op, wrt=tuple(wrt))


def expect_gradient(op: AnyOp, wrt: Sequence[str]) -> None:
    """Raise A005 unless something gives the gradients of ``op``."""
    if wrt and torch.is_grad_enabled() and _backward_of is None:
        backward_of(op, wrt)


def register_backward(op: AnyOp, qualname: str, library: torch.library.Library) -> None:
    """Let torch's autograd differentiate the plain overload of a custom op.

    The backward op is looked up when a call needs a gradient, so it may be registered later.
    """
    names = [parameter.name for parameter in op.program.parameters]

    def remember(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
        del output
        ctx.wrt = tuple(
            name for name, needed in zip(names, ctx.needs_input_grad, strict=False) if needed
        )
        ctx.backward_op = backward_of(op, ctx.wrt)
        ctx.device = keyword_only_inputs.get("device")
        tensors = [isinstance(value, torch.Tensor) for value in inputs]
        ctx.others = tuple(
            None if is_tensor else value for value, is_tensor in zip(inputs, tensors, strict=True)
        )
        ctx.tensors = tuple(index for index, is_tensor in enumerate(tensors) if is_tensor)
        ctx.save_for_backward(*(inputs[index] for index in ctx.tensors))

    def differentiate(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        values = list(ctx.others)
        for index, tensor in zip(ctx.tensors, ctx.saved_tensors, strict=True):
            values[index] = tensor
        known = dict(zip(names, values, strict=True))
        cotangents = ctx.backward_op.program.parameters[len(names) :]
        floats = [grad for grad in grads if grad is not None and grad.dtype.is_floating_point]
        more = {each.name: grad for each, grad in zip(cotangents, floats, strict=True)}
        results = ctx.backward_op(**known, **more, device=ctx.device)
        results = results if isinstance(results, tuple) else (results,)
        by_name = dict(zip(ctx.wrt, results, strict=True))
        return tuple(map(by_name.get, names))

    torch.library.register_autograd(qualname, differentiate, setup_context=remember, lib=library)
