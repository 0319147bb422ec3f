# SPDX-License-Identifier: MIT
"""The random bytes of a dropout, as the kernel of an op draws them: for checks."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cklang.device import arrays
from cklang.device.arrays import Array, torch_module
from cklang.errors import error
from cklang.families.attention.family import attention_stage, constants_of
from cklang.families.attention.host import AttentionTensor
from cklang.families.attention.plan import FusedAttention
from cklang.families.attention.problem import AttentionCase, case_of
from cklang.families.protocol import Planning
from cklang.runtime.bind import Binding, ResultLayout
from cklang.runtime.call_plan import CallPlan, access_range
from cklang.runtime.op_protocol import AnyOp
from cklang.runtime.planner import call_plan, memory_of, planning_of
from cklang.runtime.workspace import Workspace
from cklang.selection.context import current, device_named
from cklang.selection.select import AnySelection
from cklang.types import i8

if TYPE_CHECKING:
    from cklang.device.device import Device

_RANDOM = "random"


def dropout_bytes(op: AnyOp, *args: Any, device: str | None = None, **kwargs: Any) -> Any:
    """Return the random bytes that decide which weights an op's attention drops.

    The op's kernel runs and stores them; its own results are thrown away.

    Args:
        op: Made by ``@ck.op``, with one ``ck.attention`` that has a dropout and is not packed.
        *args: As in a call of the op.
        device: As in a call of the op.
        **kwargs: As in a call of the op.

    Returns:
        An array of the arguments' library, uint8 [batch, query head, query, key]: a weight is kept
        if its byte is at most floor(255 (1 - dropout)). Where the mask lets the kernel skip a tile,
        no byte is drawn, and it is 0.

    Example:
        >>> heads = ck.f16["B", "H", "S", 64]
        >>> @ck.op
        ... def attend(q: heads, k: heads, v: heads, seed: ck.i32[()]) -> heads:
        ...     return ck.attention(q, k, v, dropout=0.2, seed=seed)
        >>> q, k, v = np.ones((3, 1, 2, 128, 64), np.float16)
        >>> random = ck.dropout_bytes(attend, q, k, v, 7)  # doctest: +SKIP
        >>> random.shape, random.dtype  # doctest: +SKIP
        ((1, 2, 128, 128), dtype('uint8'))

    Raises:
        CkUnsupportedError: G009, the op has no such attention.
        CkError: What a call raises.
    """

    def planned(binding: Binding, named: str | None) -> tuple[CallPlan, tuple[ResultLayout, ...]]:
        return _planned(op, binding, named)

    (drawn,) = op._derived(args, kwargs, what=_RANDOM, plan=planned, device=device)
    return drawn.view(np.uint8 if isinstance(drawn, np.ndarray) else torch_module().uint8)


def _planned(
    op: AnyOp, binding: Binding, named: str | None
) -> tuple[CallPlan, tuple[ResultLayout, ...]]:
    """Return the launch for a bound call of ``op``, and what it makes."""
    from cklang.device.device import open_device

    plan = op._planned(binding)
    kernel = plan.kernels[0]
    if len(plan.kernels) > 1 or not isinstance(kernel, FusedAttention):
        raise error("G009", name=op.program.name)
    if not kernel.dropout or kernel.starts:
        raise error("G009", name=op.program.name)
    device = open_device(device_named(named, current()), binding.place)
    request = replace(op.request, splits=1)
    memory = memory_of(plan, binding, None)
    planning = planning_of(binding, memory, device.spec, request)
    case = case_of(kernel, planning.layouts, binding.dims)
    p = case.problem
    layout = ResultLayout(shape=(p.batch, p.heads, p.seqlen_q, p.seqlen_k), dtype=i8)
    if not math.prod(layout.shape) or case.is_empty:
        return CallPlan(device, [], [], Workspace(), binding.place), (layout,)
    out = arrays.planned(layout.shape, layout.dtype, binding.library, binding.place)
    return _call(kernel, binding, planning, case, out, device), (layout,)


def _call(
    kernel: FusedAttention,
    binding: Binding,
    planning: Planning[AnySelection],
    case: AttentionCase,
    out: Array,
    device: Device,
) -> CallPlan:
    """Return the launch whose one result is ``out``; those of the op are temporaries."""
    from cklang.build.builder import shared_builder

    batch, head, row, _ = out.strides
    random = AttentionTensor(stride_batch=batch, stride_head=head, stride_seq=row)
    case = replace(
        case, problem=replace(case.problem, random=random), values={**case.values, _RANDOM: _RANDOM}
    )
    chosen = planning.select(case, case.functions)
    constants = constants_of(kernel, planning)
    stage = attention_stage(chosen.problem, chosen.key, chosen.functions, constants)
    stage = replace(stage, zeroed=(_RANDOM,), temporaries={_RANDOM: out.size})
    pieces = [access_range(array, written=False) for array in binding.arrays.values()]
    pieces.append(access_range(out, written=True))
    names = [*binding.arrays, _RANDOM]
    sizes = {value.name: value.type.bytes(binding.dims) for value in kernel.results}
    builder, place = shared_builder(), binding.place
    return call_plan([stage], names, pieces, sizes, device, builder, place, outs=1)
