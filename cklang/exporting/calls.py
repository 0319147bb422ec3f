# SPDX-License-Identifier: MIT
"""A call of an op in numbers: its tensors, its launches and their memory, planned without a GPU."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cklang.arch import arch
from cklang.build.builder import Builder
from cklang.device.arrays import Array
from cklang.device.artifact import Artifact
from cklang.errors import error
from cklang.runtime.bind import Binding
from cklang.runtime.in_place import in_place_of
from cklang.runtime.launch import PlannedLaunch
from cklang.runtime.op import Op
from cklang.runtime.placeholder_arguments import packed_arguments
from cklang.runtime.planner import planned_launches, stages_of
from cklang.runtime.result_orders import with_result_orders
from cklang.runtime.results import planned_results
from cklang.runtime.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTensor:
    """An argument or a result of a call; strides in elements."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    argument: int = -1
    """For a result that is written into an argument: the index of this argument."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedCall:
    """A call whose tensors have given extents, on one kind of GPU."""

    gpu: str
    tensors: tuple[ExportedTensor, ...]
    """Its arguments, then its results."""
    results: int
    """How many of them are results."""
    kernels: tuple[Artifact, ...]
    """The kernel of each launch."""
    launches: tuple[PlannedLaunch, ...]
    """Their addresses are those of the tensors, then those of temporaries in the workspace."""
    workspace: Workspace


def exported_call(
    op: Op, problem: Mapping[str, Any] | Sequence[Any], gpu: str, builder: Builder
) -> ExportedCall:
    """Plan a call for a GPU and build its kernels.

    ``problem`` has the extents of its dims by name (and dtype variables and constants), for packed
    arguments; or example arguments.
    """
    binding = _bound(op, problem)
    spec = arch(gpu)
    plan = op._planned(binding, f"emu:{spec.name}")
    binding = with_result_orders(plan, binding)
    outs = planned_results(binding.results, binding)
    tensors = [_tensor(name, array) for name, array in binding.arrays.items()]
    updates = in_place_of(plan.function, op.program.parameters, binding)
    updated = {update.result: update.slot for update in updates}
    for index, out in enumerate(outs):
        result = _tensor("result" if len(outs) == 1 else f"result{index}", out)
        tensors.append(replace(result, argument=updated.get(index, -1)))
    call = stages_of(plan, binding, outs, spec, op.request)
    artifacts = builder.build_all([(stage.key, stage.functions) for stage in call.stages])
    launches, workspace = planned_launches(call.stages, artifacts, call.names, call.sizes)
    return ExportedCall(
        gpu=spec.name,
        tensors=tuple(tensors),
        results=len(outs),
        kernels=tuple(artifacts),
        launches=tuple(launches),
        workspace=workspace,
    )


def _bound(op: Op, problem: Mapping[str, Any] | Sequence[Any]) -> Binding:
    if isinstance(problem, Mapping):
        return op._bound((), packed_arguments(op.program.signature, problem))
    return op._bound(tuple(problem), {})


def _tensor(name: str, array: Array) -> ExportedTensor:
    if array.prepared is not None:
        raise error("K070", name=name, what="a prepared weight, whose order")
    if array.dtype.packed:
        raise error("K070", name=name, what="an array of packed 4-bit numbers, whose dtype")
    return ExportedTensor(
        name=name, dtype=array.dtype.name, shape=array.shape, strides=array.strides
    )
