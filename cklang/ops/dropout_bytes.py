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
from cklang.families.attention.call import attention_step, bytes_of, constants_of, storage_of
from cklang.families.attention.host import AttentionTensor
from cklang.families.attention.plan import AttentionPlan
from cklang.families.attention.problem import AttentionCase, case_of
from cklang.families.attention.select import select_attention
from cklang.runtime.bind import Binding, ResultFace
from cklang.runtime.call_plan import CallPlan, touched
from cklang.selection.context import current, device_named
from cklang.types import i8

if TYPE_CHECKING:
    from cklang.device.device import Device
    from cklang.runtime.op import Op
    from cklang.selection.select import Request

__all__ = ["dropout_bytes"]

_RANDOM = "random"


def dropout_bytes(op: Op, *args: Any, device: str | None = None, **kwargs: Any) -> Any:
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

    Raises:
        CkUnsupportedError: G009, the op has no such attention.
        CkError: What a call raises.
    """

    def planned(binding: Binding, named: str | None) -> tuple[CallPlan, tuple[ResultFace, ...]]:
        return _planned(op, binding, named)

    (made,) = op.derived(args, kwargs, what=_RANDOM, plan=planned, device=device)
    return made.view(np.uint8 if isinstance(made, np.ndarray) else torch_module().uint8)


def _planned(
    op: Op, binding: Binding, named: str | None
) -> tuple[CallPlan, tuple[ResultFace, ...]]:
    """Return the launch for a bound call of ``op``, and what it makes."""
    from cklang.device.device import open_device

    plan = op._fuse(binding)
    if not isinstance(plan, AttentionPlan) or not plan.kernel.dropout or plan.kernel.starts:
        raise error("G009", name=op.program.name)
    case = case_of(plan.kernel, storage_of(plan, binding, None), binding.dims)
    p = case.problem
    face = ResultFace(shape=(p.batch, p.heads, p.seqlen_q, p.seqlen_k), dtype=i8)
    opened = open_device(device_named(named, current()), binding.place)
    if not math.prod(face.shape) or case.is_empty:
        return CallPlan(opened, [], [], [], binding.place), (face,)
    out = arrays.planned(face.shape, face.dtype, binding.library, binding.place)
    request = replace(op.request, splits=1)
    return _call(plan, binding, case, out, opened, request), (face,)


def _call(
    plan: AttentionPlan,
    binding: Binding,
    case: AttentionCase,
    out: Array,
    device: Device,
    request: Request,
) -> CallPlan:
    """Return the launch whose one result is ``out``; those of the op are temporaries."""
    from cklang.build.builder import shared_builder

    kernel, functions = plan.kernel, plan.kernel.functions
    batch, head, row, _ = out.strides
    random = AttentionTensor(stride_batch=batch, stride_head=head, stride_seq=row)
    case = replace(
        case,
        problem=replace(case.problem, random=random),
        values={**case.values, _RANDOM: _RANDOM},
    )
    chosen = select_attention(case, device.spec, request, functions)
    (artifact,) = shared_builder().build_all([(chosen.key, functions)])
    results = {each.name: each for each in (kernel.o, *plan.function.results)}
    names = [*binding.arrays, _RANDOM, *results]
    slots = {name: place for place, name in enumerate(names)}
    constants = constants_of(kernel, binding, device)
    step = attention_step(device, artifact, chosen.problem, slots, constants)
    step = replace(step, workspace=slots[_RANDOM], zeroed=out.size)
    pieces = [touched(array, written=False) for array in binding.arrays.values()]
    pieces.append(touched(out, written=True))
    sizes = [bytes_of(value, binding.dims) for value in results.values()]
    return CallPlan(device, [step], pieces, sizes, binding.place)
