# SPDX-License-Identifier: MIT
"""What an eager call that autograd records saves for its gradient.

An op may store values in the forward call that its gradient would compute again.
:func:`cklang.vjp_saving` decides it by predicted times. Calls of the same dtypes, shapes, strides
and constants share the decision.
"""

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch

from cklang.errors import CkError
from cklang.gradients import SavingGradient, vjp_saving
from cklang.memo import BoundedMemo
from cklang.runtime.op import Op

_LIMIT = 64
"""Decisions that are kept for an op."""

_Memo = BoundedMemo[object, tuple[SavingGradient | None]]

_decided: WeakKeyDictionary[Op, _Memo] = WeakKeyDictionary()


def saving(
    op: Op, wrt: tuple[str, ...], values: Sequence[Any], device: str | None
) -> SavingGradient | None:
    """Return the forward and backward op of a call that save something; None if nothing is saved.

    An op that has no gradient saves nothing: its error is raised where the gradient is computed.
    """
    memo = _decided.setdefault(op, BoundedMemo(_LIMIT))
    key = wrt, device, tuple(map(_key, op.program.parameters, values))
    known = memo.get(key)
    if known is None:
        known = (_pair(op, wrt, values, device),)
        memo.put(key, known)
    return known[0]


def _key(parameter: Any, value: Any) -> object:
    if isinstance(value, torch.Tensor):
        return value.dtype, value.device, tuple(value.shape), value.stride()
    return value if parameter.is_const or value is None else type(value)


def _pair(
    op: Op, wrt: tuple[str, ...], values: Sequence[Any], device: str | None
) -> SavingGradient | None:
    if any(parameter.in_place for parameter in op.program.parameters):
        return None
    own = [value.detach() if isinstance(value, torch.Tensor) else value for value in values]
    try:
        pair = vjp_saving(op, *own, wrt=wrt, device=device)
    except CkError:
        return None
    return pair if pair.saved else None


def saved_values(op: Op) -> tuple[SavingGradient, ...]:
    """Return what eager calls of an op that autograd recorded save, one for each kind of call.

    Example:
        >>> import cklang.torch, torch
        >>> M, N, K = ck.dims("M N K")
        >>> @ck.op
        ... def up(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        ...     return ck.gelu(x @ w.T)
        >>> x, w = torch.ones(64, 2048).half(), torch.ones(64, 2048).half().requires_grad_()
        >>> y = up(x, w)
        >>> (pair,) = cklang.torch.saved_values(up)
        >>> pair.saved, pair.bytes
        (('%1',), 16384)
        >>> print(pair.reasons[0])  # doctest: +SKIP
        %1, f32[M, N]: saved; both ops are predicted 22.9 µs with it saved (16384 bytes), ...
    """
    memo = _decided.get(op)
    if memo is None:
        return ()
    pairs = (pair for (pair,) in memo.values())
    return tuple(pair for pair in pairs if pair is not None)
