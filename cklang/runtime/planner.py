# SPDX-License-Identifier: MIT
"""From a program's kernels to launches: each family plans its own, memory is planned for all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from cklang.arch import ArchSpec
from cklang.device.arrays import Array
from cklang.device.device import Device
from cklang.errors import CkError, error
from cklang.families import FAMILIES, plan_of, stand_ins, with_named
from cklang.families.index_arrays import HostChecks
from cklang.families.protocol import HostCheck, Launches, Planning, Select
from cklang.families.stage import Stage
from cklang.families.tensor_layout import TensorLayout
from cklang.families.views import MemoryView, copy_of, in_memory, views_of, wanted_order
from cklang.fusion.functions import Functions
from cklang.fusion.placement import copy_operation
from cklang.fusion.plan import AnyKernel, Plan
from cklang.ir.extents import EXTENT, extent_numbers
from cklang.ir.indices import ARANGE, index_ranges
from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.ops import OPS
from cklang.ir.ops import Kind as OpKind
from cklang.ir.scatter import in_place_results
from cklang.keys import AnyKey
from cklang.runtime.bind import Binding
from cklang.runtime.call_plan import AccessRange, CallPlan, access_ranges, step_on
from cklang.runtime.launch import Described, PlannedLaunch, described_stage, planned_launch
from cklang.runtime.result_orders import result_orders
from cklang.runtime.workspace import Temporary, Workspace, planned_workspace
from cklang.selection.request import Request
from cklang.selection.select import AnySelection, find, only_kernel
from cklang.toolchain.progress import Wait

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from cklang.build.builder import Builder
    from cklang.device.artifact import Artifact
    from cklang.families.grid import Pattern
    from cklang.selection.registry import Registry

Choice: TypeAlias = Launches[AnySelection]
"""A kernel of a call that was selected, with its launches."""

Selecting: TypeAlias = Callable[[ArchSpec, Request], Select[AnySelection]]
"""Returns what selects kernels on a GPU as somebody asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallMemory:
    """How the values of a call lie in memory."""

    layouts: Mapping[str, TensorLayout]
    """The layout of each argument, temporary, result and view, by name."""
    views: Mapping[str, MemoryView]
    """Where those lie that have no memory of their own."""


def choices_of(
    plan: Plan,
    binding: Binding,
    memory: CallMemory,
    spec: ArchSpec,
    request: Request,
    selecting: Selecting | None = None,
) -> list[Choice]:
    """Return the launches of each kernel whose result has an element, in order.

    ``selecting`` selects kernels in the place of :mod:`cklang.selection`.
    """
    choices: list[Choice] = []
    copied: set[str] = set()
    plannings = _plannings(plan, binding, memory, spec, request, selecting)
    with Wait(f"choosing the kernels of @{plan.function.name}", len(plan.kernels)) as progress:
        named = progress.over(plannings, lambda planning: planning[0].family)
        planned = [(kernel, list(launches())) for kernel, launches in named]
    for kernel, launches in planned:
        for choice in launches:
            # What two kernels read in another order is copied once.
            before = tuple(stage for stage in choice.before if not stage.written <= copied)
            copied.update(*(stage.written for stage in before))
            main = replace(choice.main, awaited=choice.selection.awaited)
            source = _copied(memory.views, kernel)
            note = f"a copy: {source} has no strides as its readers need them" if source else ""
            choices.append(replace(choice, before=before, main=main, note=choice.note or note))
    return choices


def kernel_mistakes(
    plan: Plan, binding: Binding, memory: CallMemory, spec: ArchSpec, request: Request
) -> list[CkError]:
    """Return why kernels of a call cannot be launched, the first reason of each."""
    mistakes: list[CkError] = []
    for _, planned in _plannings(plan, binding, memory, spec, request):
        try:
            list(planned())
        except CkError as mistake:
            mistakes.append(mistake)
    return mistakes


def _plannings(
    plan: Plan,
    binding: Binding,
    memory: CallMemory,
    spec: ArchSpec,
    request: Request,
    selecting: Selecting | None = None,
) -> Iterator[tuple[AnyKernel, Callable[[], Iterator[Choice]]]]:
    """Yield each kernel of a call, copies included, and what plans its launches."""
    requests = _requests(plan, request)
    planning = planning_of(binding, memory, spec, request)
    named = [name for name, wanted in requests.items() if wanted.algorithm is not None]
    for kernel in _with_copies(plan, memory.views, named):
        family = FAMILIES[kernel.family]
        wanted = requests.get(family.name) or request.only(family.algorithm)
        own = replace(planning, select=(selecting or selecting_of)(spec, wanted))
        yield kernel, partial(family.plan, kernel, own)


def _copied(views: Mapping[str, MemoryView], kernel: AnyKernel) -> Value | None:
    """Return what a kernel copies for a reshaped value; None for a kernel of the program."""
    memory = views.get(kernel.results[0].name)
    view = None if memory is None else views.get(memory.memory)
    return None if view is None else view.source


def _with_copies(
    plan: Plan, views: Mapping[str, MemoryView], named: Collection[str]
) -> Iterator[AnyKernel]:
    """Yield the kernels of a plan, each after the copies of reshaped values that it reads.

    They are of the families whose algorithms somebody named where these have such kernels.
    """
    copied: set[str] = set()

    def copies(value: Value) -> Iterator[AnyKernel]:
        memory = views[value.name].memory if value.name in views else ""
        view = views.get(memory)
        if view is None or view.source is None or memory in copied:
            return
        copied.add(memory)
        yield from copies(view.source)
        (kernel,) = with_named(plan_of(_copy(memory, view.source)), named).kernels
        yield kernel

    for kernel in with_named(plan, named).kernels:
        for value in kernel.inputs:
            yield from copies(value)
        yield kernel


def _copy(memory: str, source: Value) -> Function:
    """Return the program that copies a value."""
    result = copy_of(Value(name=memory, type=source.type), source)
    body = (copy_operation(source, result, None),)
    return Function(name=f"copy_{source.name}", params=(source,), body=body, results=(result,))


def planning_of(
    binding: Binding, memory: CallMemory, spec: ArchSpec, request: Request
) -> Planning[AnySelection]:
    """Return what families are told of a bound call."""
    return Planning(
        layouts=memory.layouts,
        dims=binding.dims,
        spec=spec,
        select=selecting_of(spec, request),
        fixed=only_kernel,
    )


def _requests(plan: Plan, request: Request) -> dict[str, Request]:
    """Return the request for each family of a plan, with the algorithm of the family's class."""
    names = dict.fromkeys(kernel.family for kernel in plan.kernels)
    families = [FAMILIES[name] for name in names]
    if request.algorithms:
        families += [other for name in names for other in stand_ins(name)]
    if len(families) == 1 and not request.others:
        return {families[0].name: request}
    for algorithm in request.algorithms:
        if not any(isinstance(algorithm, family.algorithm or ()) for family in families):
            want = " or ".join(family.algorithm_text for family in families)
            raise error("K022", want=want, got=algorithm)
    return {family.name: request.only(family.algorithm) for family in families}


def selecting_of(spec: ArchSpec, request: Request) -> Select[AnySelection]:
    """Return what selects kernels on a GPU as somebody asked."""

    def select(
        problem: object, functions: Functions, adapt: Callable[[Any], Any] | None = None
    ) -> AnySelection:
        own = request
        if adapt is not None and request.algorithm is not None:
            own = replace(request, algorithm=adapt(request.algorithm))
        return find(problem, spec, own, functions)

    return select


def memory_of(plan: Plan, binding: Binding, outs: Sequence[Array] | None) -> CallMemory:
    """Return how the values of a bound call lie in memory.

    Results without an array are packed, in the order of axes that users expect.
    """
    stored = _stored_layouts(plan, binding, outs)
    views = views_of(plan.function, stored, binding.dims, _matrices(plan))
    layouts = {**stored, **{name: view.layout for name, view in views.items()}}
    return CallMemory(layouts=layouts, views=views)


def _matrices(plan: Plan) -> set[str]:
    return {
        value.name
        for kernel in plan.kernels
        for value in FAMILIES[kernel.family].orders.matrices(kernel)
    }


def _stored_layouts(
    plan: Plan, binding: Binding, outs: Sequence[Array] | None
) -> dict[str, TensorLayout]:
    layouts = {name: TensorLayout.of(name, array) for name, array in binding.arrays.items()}
    for operation in plan.function.body:
        if operation.op in (EXTENT, ARANGE):
            value = operation.result
            layouts[value.name] = TensorLayout.packed(value, binding.dims)
    results = plan.function.results
    orders = result_orders(plan, binding.arrays)
    readers = _readers(plan.kernels)
    for kernel in plan.kernels:
        for value in kernel.results:
            if value in results:
                order: Sequence[int] | None = orders.get(value.name)
            else:
                order = _asked_order(plan, kernel, value, readers.get(value.name, ()))
                order = order or FAMILIES[kernel.family].orders.own(kernel, layouts)
            layouts[value.name] = TensorLayout.packed(value, binding.dims, order)
    for value in results:
        layouts.setdefault(value.name, TensorLayout.packed(value, binding.dims))
    if outs is not None:
        for value, out in zip(results, outs, strict=True):
            layouts[value.name] = TensorLayout.of("out", out)
    for result, parameter in in_place_results(plan.function).items():
        layouts[result] = layouts[parameter]
    return layouts


def _readers(kernels: Sequence[AnyKernel]) -> dict[str, list[AnyKernel]]:
    """Return the kernels that read each value, by its name."""
    readers: dict[str, list[AnyKernel]] = {}
    for kernel in kernels:
        for value in kernel.inputs:
            readers.setdefault(value.name, []).append(kernel)
    return readers


def _asked_order(
    plan: Plan, writer: AnyKernel, value: Value, readers: Sequence[AnyKernel]
) -> Sequence[int] | None:
    """Return the order of a temporary's axes that a reader asks for, if the writer can write it."""
    own = FAMILIES[writer.family].orders
    order: Sequence[int] | None = wanted_order(plan.function, value)
    if order is not None and own.can_write(writer, value, order):
        return order
    for reader in readers:
        order = FAMILIES[reader.family].orders.reader(reader, value)
        if order is not None and own.can_write(writer, value, order):
            return order
    return None


def prepare(
    plan: Plan,
    binding: Binding,
    outs: Sequence[Array],
    device: Device,
    builder: Builder,
    request: Request,
) -> CallPlan:
    """Return the launches of a call, with every kernel built and loaded."""
    call = stages_of(plan, binding, outs, device.spec, request)
    pieces = access_ranges(plan.function, binding, outs)
    slots = {name: slot for slot, name in enumerate(call.names)}
    same = {(slots[a], slots[b]) for a, b in in_place_results(plan.function).items()}
    return call_plan(
        call.stages, call.names, pieces, call.sizes, device, builder, binding.place, len(outs), same
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStages:
    """What a call launches, before anything is built."""

    stages: tuple[Stage, ...]
    names: tuple[str, ...]
    """The values whose addresses a call gives, in order; those of its results last."""
    sizes: Mapping[str, int]
    """The bytes of the program's other values."""


def stages_of(
    plan: Plan,
    binding: Binding,
    outs: Sequence[Array],
    spec: ArchSpec,
    request: Request,
    selecting: Selecting | None = None,
) -> CallStages:
    """Return what a call launches on a GPU; ``selecting`` is as for :func:`choices_of`."""
    memory = memory_of(plan, binding, outs)
    choices = choices_of(plan, binding, memory, spec, request, selecting)
    names = [*binding.arrays, *(value.name for value in plan.function.results)]
    sizes = {
        value.name: value.type.bytes(binding.dims)
        for kernel in plan.kernels
        for value in kernel.results
    }
    own = (step.result for step in plan.function.body if _is_place(step))
    sizes |= {value.name: value.type.bytes(binding.dims) for value in own}
    numbers = numbers_of(plan.function, binding.dims)
    stages = [
        with_numbers(in_memory(stage, memory.views), numbers)
        for choice in choices
        for stage in choice.stages
    ]
    return CallStages(stages=tuple(stages), names=tuple(names), sizes=sizes)


_PLACES = (OpKind.JOIN, OpKind.VIEW, OpKind.PARTIAL)


def _is_place(operation: Operation) -> bool:
    """Tell whether kernels write the result of an operation in parts, or as another value."""
    return operation.op in OPS and OPS[operation.op].kind in _PLACES


def numbers_of(function: Function, dims: Mapping[str, int]) -> dict[str, int | range]:
    """Return the values of a program that are numbers of its call, not data, by name."""
    return {**extent_numbers(function, dims), **index_ranges(function, dims)}


def with_numbers(stage: Stage, numbers: Mapping[str, int | range]) -> Stage:
    """Return a launch for which those of ``numbers`` that it reads are in device memory."""
    used = {name: number for name, number in numbers.items() if name in stage.values}
    return replace(stage, constants={**stage.constants, **used}) if used else stage


def call_plan(
    stages: Sequence[Stage],
    names: Sequence[str],
    pieces: Sequence[AccessRange],
    sizes: Mapping[str, int],
    device: Device,
    builder: Builder,
    place: str,
    outs: int,
    same: Collection[tuple[int, int]] = (),
) -> CallPlan:
    """Return launches with every kernel built and loaded, and memory for their temporaries.

    Args:
        stages: What is launched, in order.
        names: The values whose addresses a call gives, in order; those of its results last.
        pieces: What a call touches of each.
        sizes: The bytes of the program's other values.
        device: Where.
        builder: Builds the kernels.
        place: Where the arrays of a call are.
        outs: How many results a call has.
        same: The places of results that are in the memory of arguments, with those of these.
    """
    artifacts = builder.build_all([(stage.key, stage.functions) for stage in stages])
    launches, workspace = planned_launches(stages, artifacts, names, sizes)
    steps = [
        step_on(device, artifact, launch, partial(_purpose, stage), stage.awaited)
        for artifact, launch, stage in zip(artifacts, launches, stages, strict=True)
    ]
    return CallPlan(device, steps, pieces, workspace, place, outs=outs, same=same)


def _purpose(stage: Stage) -> object:
    return stage.problem


def planned_launches(
    stages: Sequence[Stage],
    artifacts: Sequence[Artifact],
    names: Sequence[str],
    sizes: Mapping[str, int],
) -> tuple[list[PlannedLaunch], Workspace]:
    """Return the launches of a call in numbers, and memory for its temporaries.

    ``names`` are the values whose addresses a call gives, in order, ``sizes`` the bytes of the
    program's others.
    """
    described = [
        described_stage(artifact, stage) for artifact, stage in zip(artifacts, stages, strict=True)
    ]
    slots = {name: index for index, name in enumerate(names)}
    temporaries = _temporaries(stages, described, set(slots), sizes)
    slots |= {name: len(names) + index for index, name in enumerate(temporaries)}
    known = {name: temporary.bytes for name, temporary in temporaries.items()}
    launches = [
        planned_launch(launch, stage, slots, slots.get(_own_workspace(index), 0), known)
        for index, (launch, stage) in enumerate(zip(described, stages, strict=True))
    ]
    workspace = planned_workspace(list(temporaries.values()))
    named = [
        (f"%{name}" if name in sizes else name, temporary)
        for name, temporary in temporaries.items()
    ]
    return launches, replace(workspace, temporaries=tuple(named))


def _own_workspace(index: int) -> str:
    return f"the workspace of launch {index}"


def _temporaries(
    stages: Sequence[Stage],
    launches: Sequence[Described],
    external: set[str],
    sizes: Mapping[str, int],
) -> dict[str, Temporary]:
    """Return the values that live within a call, by name, with their lifetimes."""
    temporaries: dict[str, Temporary] = {}
    for index, (stage, launch) in enumerate(zip(stages, launches, strict=True)):
        for name in dict.fromkeys(stage.values):
            if name in external or name in stage.constants:
                continue
            known = temporaries.get(name, Temporary(bytes=0, first=index, last=index))
            size = max(known.bytes, sizes.get(name, 0), stage.temporaries.get(name, 0))
            temporaries[name] = replace(known, bytes=size, last=index)
        if launch.shape.workspace_bytes:
            size = launch.shape.workspace_bytes
            temporaries[_own_workspace(index)] = Temporary(bytes=size, first=index, last=index)
    return temporaries


def host_checks(plan: Plan, binding: Binding) -> HostCheck | None:
    """Return what calls like a bound one check before they launch; None if there is nothing."""
    checks = [_check_of(kernel, binding) for kernel in plan.kernels]
    present = tuple(check for check in checks if check is not None)
    if len(present) < 2:
        return next(iter(present), None)
    return HostChecks(checks=present)


def _check_of(kernel: AnyKernel, binding: Binding) -> HostCheck | None:
    return FAMILIES[kernel.family].host_check(kernel, binding.arrays, binding.dims, binding.place)


def build_choices(choices: Sequence[Choice], executor: Executor | None) -> tuple[Artifact, ...]:
    """Build the kernels of choices, then those around them.

    The ``executor`` builds instead of this machine's compilers.
    """
    from cklang.build.parallel import built

    return built(kernels_of(choices), executor)


def kernels_of(choices: Sequence[Choice]) -> list[tuple[AnyKey, Functions]]:
    """Return the kernels of choices, then those around them, as builders take them."""
    stages = [choice.main for choice in choices]
    stages += [stage for choice in choices for stage in (*choice.before, *choice.after)]
    return [(stage.key, stage.functions) for stage in stages]


def declare(registry: Registry, choice: Choice, among: Pattern | str | None, priority: int) -> int:
    """Declare kernels for a choice, and those around it; return how many are new.

    Raises:
        CkValueError: As :meth:`cklang.dispatch.Registry.declare`.
    """
    key, functions = choice.main.key, choice.main.functions
    new = sum(
        registry.add(stage.key, stage.functions, priority=priority)
        for stage in (*choice.before, *choice.after)
    )
    if FAMILIES[key.family].algorithm is None:
        return new + registry.add(key, functions, priority=priority)
    return new + registry.declare(key.signature, functions, key.arch, among, priority=priority)
