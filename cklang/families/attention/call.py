# SPDX-License-Identifier: MIT
"""From a bound call of an attention to its launch, and what is said about it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cklang.arch import ArchSpec
from cklang.attention_keys import AttentionAlgorithm, AttentionKey
from cklang.build.record import Artifact, LaunchRecord
from cklang.device.arrays import Array
from cklang.device.constants import Cell, cell
from cklang.device.device import Device
from cklang.errors import CkUnsupportedError
from cklang.families.attention.launch import loaded_attention
from cklang.families.attention.plan import AttentionFunctions, AttentionPlan, FusedAttention
from cklang.families.attention.problem import AttentionCase, case_of
from cklang.families.attention.select import Combination, combination, select_attention
from cklang.families.gemm.problem import Storage
from cklang.ir.nodes import Value
from cklang.runtime.bind import Binding
from cklang.runtime.call_plan import CallPlan, Step, packed, stored, touched

if TYPE_CHECKING:
    from cklang.build.builder import Builder
    from cklang.selection.select import Request, Selection

__all__ = [
    "AttentionChoice",
    "attention_step",
    "bytes_of",
    "choice_lines",
    "choose_attention",
    "constants_of",
    "prepare_attention",
    "storage_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionChoice:
    """The kernel of a call with its problem and the algorithm that was selected for it."""

    kernel: FusedAttention
    problem: AttentionCase
    selection: Selection[AttentionKey, AttentionCase] | Combination

    @property
    def filling(self) -> AttentionFunctions:
        """What fills the kernel's stencil."""
        functions = self.kernel.functions
        if not isinstance(self.selection.key, AttentionKey):
            return AttentionFunctions(score=None, mask=None, output=functions.output)
        return replace(functions, output=None) if self.problem.signature.split else functions


def choose_attention(
    plan: AttentionPlan,
    binding: Binding,
    outs: Sequence[Array] | None,
    spec: ArchSpec,
    request: Request,
) -> list[AttentionChoice]:
    """Return the kernels of a call: none if no result has an element, two if keys are split.

    Raises:
        CkValueError: I045, heads do not fit; K002, the algorithm asked for is none of attention.
        CkUnsupportedError: K101, K102, no algorithm.
    """
    kernel, storage = plan.kernel, storage_of(plan, binding, outs)
    case = case_of(kernel, storage, binding.dims)
    if case.is_empty:
        return []
    try:
        selection = select_attention(case, spec, request, kernel.functions)
    except CkUnsupportedError:
        if not kernel.soft_cap:
            raise
        # A bundle may have no kernel of it: expressions fill those of any function.
        kernel = kernel.as_written
        case = case_of(kernel, storage, binding.dims)
        selection = select_attention(case, spec, request, kernel.functions)
    case = selection.problem
    first = AttentionChoice(kernel=kernel, problem=case, selection=selection)
    if not case.signature.split:
        return [first]
    second = combination(case, spec)
    return [first, AttentionChoice(kernel=kernel, problem=case.combined, selection=second)]


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
    choices = choose_attention(plan, binding, outs, device.spec, request)
    artifacts = builder.build_all([(each.selection.key, each.filling) for each in choices])
    held = _temporaries(plan, binding, choices)
    names = [*binding.arrays, *(value.name for value in plan.function.results), *held]
    slots = {name: index for index, name in enumerate(names)}
    constants = constants_of(plan.kernel, binding, device)
    steps = [
        attention_step(device, artifact, choice.problem, slots, constants)
        for choice, artifact in zip(choices, artifacts, strict=True)
    ]
    return CallPlan(device, steps, pieces, list(held.values()), binding.place, outs=len(outs))


def attention_step(
    device: Device,
    artifact: Artifact,
    case: AttentionCase,
    slots: Mapping[str, int],
    constants: Mapping[str, Cell],
) -> Step:
    """Return the launch of a kernel for ``case``; its values have ``slots`` or are constants."""
    loaded = loaded_attention(device, artifact)
    shape = loaded.prepare(case)
    launch = device.launch(loaded.function, shape.grid, shape.block, shape.kernarg)
    patches = []
    for value, words in shape.pointers.items():
        if value in constants:
            for word in words:
                launch.words[word] = constants[value].address
        else:
            patches += [(word, slots[value]) for word in words]
    record = LaunchRecord(artifact=artifact, problem=case, grid=shape.grid, block=shape.block)
    return Step(
        launch=launch,
        patches=tuple(patches),
        record=record,
        workspace=0,
        zeroed=0,
        constants=tuple(constants.values()),
    )


def _temporaries(
    plan: AttentionPlan, binding: Binding, choices: Sequence[AttentionChoice]
) -> dict[str, int]:
    """Return the bytes of what is neither argument nor result: an o nobody asked for, and parts."""
    o = plan.kernel.o
    found = {} if o in plan.function.results else {o.name: bytes_of(o, binding.dims)}
    return found | (choices[0].problem.part_bytes if choices else {})


def bytes_of(value: Value, dims: Mapping[str, int]) -> int:
    """Return the size of a value in a call whose extents are ``dims``."""
    return math.prod(value.type.extents(dims)) * value.type.dtype.bytes


def constants_of(kernel: FusedAttention, binding: Binding, device: Device) -> dict[str, Cell]:
    """Return what is no argument's: constants, and a zero for each tensor without an element."""
    cells = {name: cell(device, number) for name, number in kernel.constants}
    for value in kernel.reads:
        if 0 in binding.arrays[value.name].shape:
            cells[value.name] = cell(device, 0)
    return cells


def storage_of(
    plan: AttentionPlan, binding: Binding, outs: Sequence[Array] | None
) -> dict[str, Storage]:
    """Return how each value of a call lies in memory; results are packed unless they are given."""
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
    splits = choice.problem.problem.splits
    lines = [
        f"kernel of {choice.problem}" + (f", in {splits} splits" if splits > 1 else ""),
        f"  key        {key.digest}",
        f"  label      {key.label}",
        *([f"  algorithm  {_words(key.algorithm)}"] if isinstance(key, AttentionKey) else []),
        f"  because    {selection.reason}",
        f"  from       {selection.origin}",
    ]
    if isinstance(selection, Combination):
        return lines
    for each, said in selection.pool.account(selection.problem):
        lines.append(f"  candidate  {_short(each.algorithm)}: {said}")
    return lines


def _short(a: AttentionAlgorithm) -> str:
    pads = "".join("t" if pad else "f" for pad in (a.pad_q, a.pad_k, a.pad_d, a.pad_dv))
    return f"{'x'.join(map(str, a.tile))} {a.pipeline.value} {pads}"


def _words(a: AttentionAlgorithm) -> str:
    tile, warps, warp_tile = (
        "x".join(map(str, extents)) for extents in (a.tile, a.warps, a.warp_tile)
    )
    words = f"tile {tile}, warps {warps}, warp tile {warp_tile}, {a.pipeline.value}"
    return f"{words}, vectors of {a.vector}"
