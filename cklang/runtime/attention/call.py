# SPDX-License-Identifier: MIT
"""From a bound call of an attention to its launch, and what is said about it."""

from __future__ import annotations

import math
import struct
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cklang.arch import ArchSpec
from cklang.attention_keys import AttentionAlgorithm
from cklang.errors import error
from cklang.fusion.attention_plan import AttentionPlan, FusedAttention
from cklang.ir.nodes import Value
from cklang.runtime.arrays import Array
from cklang.runtime.attention.launch import loaded_attention
from cklang.runtime.attention.problem import AttentionCase, case_of
from cklang.runtime.attention.select import AttentionSelection, select_attention
from cklang.runtime.bind import Binding
from cklang.runtime.device import Device
from cklang.runtime.dispatch import CallPlan, Step, packed, stored, touched
from cklang.runtime.problem import Storage
from cklang.runtime.record import LaunchRecord
from cklang.types import Dim

if TYPE_CHECKING:
    from cklang.runtime.build import Builder
    from cklang.runtime.select import Request

__all__ = ["AttentionChoice", "choice_lines", "choose_attention", "prepare_attention"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionChoice:
    """The kernel of a call with its problem and the algorithm that was selected for it."""

    kernel: FusedAttention
    problem: AttentionCase
    selection: AttentionSelection


def choose_attention(
    plan: AttentionPlan,
    binding: Binding,
    outs: Sequence[Array] | None,
    spec: ArchSpec,
    request: Request,
) -> AttentionChoice | None:
    """Return the problem and the algorithm of a call; None if no result has an element.

    Raises:
        CkValueError: I045, heads do not fit; K002, the algorithm asked for is none of attention.
        CkUnsupportedError: K101, K102, no algorithm.
    """
    case = case_of(plan.kernel, _storage(plan, binding, outs), binding.dims)
    if case.is_empty:
        return None
    algorithm = request.algorithm
    if algorithm is not None and not isinstance(algorithm, AttentionAlgorithm):
        want = "a cklang.AttentionAlgorithm for an op with an attention"
        raise error("K002", what="using(...)", want=want, got=algorithm)
    selection = select_attention(case, spec, algorithm)
    return AttentionChoice(kernel=plan.kernel, problem=case, selection=selection)


def prepare_attention(
    plan: AttentionPlan,
    binding: Binding,
    outs: Sequence[Array],
    device: Device,
    builder: Builder,
    request: Request,
) -> CallPlan:
    """Return the launch of a call, with its kernel built and loaded."""
    pieces = [touched(array, written=False) for array in binding.arrays.values()]
    pieces += [touched(out, written=True) for out in outs]
    choice = choose_attention(plan, binding, outs, device.spec, request)
    if choice is None:
        return CallPlan(device, [], pieces, [], binding.place, outs=len(outs))
    wanted = (choice.selection.key, plan.kernel.functions)
    (artifact,) = builder.build_all([wanted])
    loaded = loaded_attention(device, artifact)
    shape = loaded.prepare(choice.problem)
    launch = device.launch(loaded.function, shape.grid, shape.block, shape.kernarg)
    slots = _slots(plan, binding)
    fixed = _fixed(plan.kernel, binding, device)
    patches = []
    for value, words in shape.pointers.items():
        if value in fixed:
            for word in words:
                launch.words[word] = fixed[value]
        else:
            patches += [(word, slots[value]) for word in words]
    o = plan.kernel.o
    temporaries = [] if o in plan.function.results else [_bytes(o, binding.dims)]
    record = LaunchRecord(
        artifact=artifact, problem=choice.problem, grid=shape.grid, block=shape.block
    )
    step = Step(launch=launch, patches=tuple(patches), record=record, workspace=0, zeroed=0)
    return CallPlan(device, [step], pieces, temporaries, binding.place, outs=len(outs))


def _slots(plan: AttentionPlan, binding: Binding) -> dict[str, int]:
    """Return the index of each value's address: arguments, results, then an o nobody asked for."""
    names = [*binding.arrays, *(value.name for value in plan.function.results)]
    if plan.kernel.o.name not in names:
        names.append(plan.kernel.o.name)
    return {name: index for index, name in enumerate(names)}


def _bytes(value: Value, dims: Mapping[str, int]) -> int:
    extents = [dims[e.name] if isinstance(e, Dim) else int(str(e)) for e in value.type.shape]
    return math.prod(extents) * value.type.dtype.bytes


def _fixed(kernel: FusedAttention, binding: Binding, device: Device) -> dict[str, int]:
    """Return the addresses that are no argument's: of constants, and of tensors with no element."""
    found = {name: _cell(device, number) for name, number in kernel.constants}
    for value in kernel.reads:
        if 0 in binding.arrays[value.name].shape:
            found[value.name] = _cell(device, 0)
    return found


_cells: dict[tuple[int, int], int] = {}
_lock = threading.Lock()
_CELL = struct.Struct("<q")


def _cell(device: Device, number: int) -> int:
    """Return the address of 8 bytes of a device that hold ``number`` as long as the process."""
    import ctypes

    with _lock:
        known = _cells.get((device.index, number))
        if known is None:
            known = device.allocate(_CELL.size)
            held = ctypes.create_string_buffer(_CELL.pack(number), _CELL.size)
            device.copy_in(known, ctypes.addressof(held), _CELL.size)
            _cells[device.index, number] = known
        return known


def _storage(
    plan: AttentionPlan, binding: Binding, outs: Sequence[Array] | None
) -> dict[str, Storage]:
    storage = {name: stored(name, array) for name, array in binding.arrays.items()}
    for value in (plan.kernel.o, plan.kernel.lse):
        if value is not None:
            storage[value.name] = packed(value, binding.dims)
    if outs is not None:
        for value, out in zip(plan.function.results, outs, strict=True):
            storage[value.name] = stored("out", out)
    return storage


def choice_lines(choice: AttentionChoice) -> list[str]:
    """Return problem, key and reason of a choice as lines of text."""
    key, selection = choice.selection.key, choice.selection
    a = key.algorithm
    tile, warps, warp_tile = (
        "x".join(map(str, extents)) for extents in (a.tile, a.warps, a.warp_tile)
    )
    words = f"tile {tile}, warps {warps}, warp tile {warp_tile}, {a.pipeline.value}"
    words += f", vectors of {a.vector}"
    lines = [
        f"kernel 0 computes {choice.problem}",
        f"  key        {key.digest}",
        f"  label      {key.label}",
        f"  algorithm  {words}",
        f"  because    {selection.reason}",
        f"  from       {selection.origin}",
    ]
    reasons = Counter(str(rejection) for rejection in selection.rejections)
    lines += [f"  rejected   {count} x {reason}" for reason, count in reasons.items()]
    return lines
