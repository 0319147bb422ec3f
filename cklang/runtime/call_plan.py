# SPDX-License-Identifier: MIT
"""From a bound call to launches: made once for a problem, then repeated without looking again.

A :class:`CallPlan` holds the launches of a call in order with their argument bytes. A repeated
call writes its addresses into them and launches; nothing else is touched.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from cklang.arch import ArchSpec
from cklang.build.record import Artifact, LaunchRecord
from cklang.device import arrays
from cklang.device.arrays import HOST, Array
from cklang.device.device import Device, Effort, Launch
from cklang.device.pinned_buffers import Upload
from cklang.device.staging import Region, staged
from cklang.families.conv.problem import AnyProblem, problem_of_kernel
from cklang.families.family import NOTHING
from cklang.families.gemm.bands import WHOLE, Band, bands_of
from cklang.families.gemm.launch import loaded
from cklang.families.gemm.problem import Problem, Storage
from cklang.families.layout_copy.launch import loaded_transpose
from cklang.families.layout_copy.plan import Arranged, Transposition, arranged, packed_strides
from cklang.fusion.plan import FusedConv, FusionPlan, Kernel, epilogue_hash
from cklang.ir.nodes import Value
from cklang.keys import KernelKey
from cklang.runtime.bind import Binding
from cklang.selection.select import Request, Selection, find

if TYPE_CHECKING:
    from cklang.build.builder import Builder, Wanted

__all__ = [
    "CallPlan",
    "Choice",
    "Step",
    "choose",
    "packed",
    "prepare",
    "storage_of",
    "stored",
    "touched",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One kernel of a call with its problem and the algorithm that was selected for it."""

    kernel: Kernel
    problem: AnyProblem
    selection: Selection[KernelKey, AnyProblem]
    before: tuple[Transposition, ...] = ()
    """Copies that a convolution's program asks for: of what the kernel reads."""
    after: tuple[Transposition, ...] = ()
    """The same of what it writes."""
    band: Band = WHOLE
    """Which part of the kernel's result it computes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One launch: where each address goes in the argument words."""

    launch: Launch
    patches: tuple[tuple[int, int], ...]
    """(index of a 64-bit word, index of an address)."""
    record: LaunchRecord
    workspace: int
    """Index of the address of its workspace."""
    zeroed: int
    """How many bytes of it must be 0 before each launch."""
    moves: tuple[tuple[int, int], ...] = ()
    """(index of a 64-bit word, bytes to add to its address), for a band of a product."""
    table: Upload | None = None
    """What a group of products reads its arguments from, at the place of its workspace."""
    constants: tuple[object, ...] = ()
    """Memory that its arguments name and that must live as long as it can be launched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """What a call touches of one argument, relative to its address."""

    low: int
    high: int
    written: bool


class CallPlan:
    """The launches of one call; addresses are those of the arguments, then those of the results."""

    def __init__(
        self,
        device: Device,
        steps: Sequence[Step],
        touched: Sequence[Touched],
        temporaries: Sequence[int],
        place: str,
        outs: int = 1,
    ) -> None:
        self.device = device
        self.touched = tuple(touched)
        # How far from a result's address an argument's may not be.
        first = len(touched) - outs
        self._meeting = tuple(
            (place, tuple((out.low - p.high, out.high - p.low) for p in touched[:place]))
            for place, out in enumerate(touched)
            if place >= first
        )
        self.place = place
        self._steps = tuple(steps)
        self._temporaries = tuple(temporaries)
        self._copies = place == HOST and not device.host_memory
        self.counts = bool(steps) and device.emulated and place == HOST
        """Whether it is known what a call took: the emulator tells of the last launch alone, so
        each must be waited for, and a call with a GPU's arrays waits for none."""
        self._lock = threading.Lock()

    @property
    def records(self) -> tuple[LaunchRecord, ...]:
        """What is launched, in order."""
        return tuple(step.record for step in self._steps)

    def overlaps(self, addresses: Sequence[int]) -> bool:
        """Whether the span of a result meets that of an argument, or of a result before it."""
        return any(
            low < address - addresses[place] < high
            for place, limits in self._meeting
            for address, (low, high) in zip(addresses, limits, strict=False)
        )

    def run(self, addresses: list[int], stream: int | None) -> Effort | None:
        """Launch everything, in order with ``stream``.

        Results in host memory are there when this returns; for others nothing is waited for.

        Returns:
            What emulating all launches but the last took; the last one's is asked for only when
            somebody wants to know.
        """
        if not self._steps:
            return None
        if self._copies:
            return self._run_with_copies(addresses, stream)
        effort = self._launch_with_memory(addresses, stream)
        if self.place == HOST:
            self.device.synchronize(stream)
        return effort

    def _run_with_copies(self, addresses: Sequence[int], stream: int | None) -> Effort | None:
        with self.ready(addresses, stream) as launch:
            effort = launch()
            self.device.synchronize(stream)
        return effort

    @contextmanager
    def ready(
        self, addresses: Sequence[int], stream: int | None = None
    ) -> Iterator[Callable[[], Effort | None]]:
        """Give a function that launches everything, any number of times, on memory that is there.

        It returns what :meth:`run` does; whoever calls it waits for the device inside the block.
        """
        regions = [
            Region(pointer=address, low=piece.low, high=piece.high, written=piece.written)
            for address, piece in zip(addresses, self.touched, strict=True)
        ]
        copied = staged(self.device, regions) if self._copies else nullcontext(list(addresses))
        with copied as places:
            yield partial(self._launch_with_memory, places, stream)

    def _launch_with_memory(self, addresses: list[int], stream: int | None) -> Effort | None:
        """Launch with memory of the call's own, which the stream takes and gives back in order."""
        if not self._temporaries:
            return self._launch(addresses, stream)
        device, held = self.device, list[int]()
        device.activate()
        try:
            for size in self._temporaries:
                held.append(device.allocate_in_order(size, stream))
            return self._launch([*addresses, *held], stream)
        finally:
            for memory in held:
                device.free_in_order(memory, stream)

    def _launch(self, addresses: Sequence[int], stream: int | None) -> Effort | None:
        device, before = self.device, None
        with self._lock:
            device.activate()
            for index, step in enumerate(self._steps):
                if index and self.counts:
                    before = self._effort_so_far(before, stream)
                words = step.launch.words
                for word, address in step.patches:
                    words[word] = addresses[address]
                for word, bytes_ in step.moves:
                    words[word] += bytes_
                if step.table is not None:
                    step.table.send(addresses[step.workspace], addresses, stream)
                if step.zeroed:
                    device.clear(addresses[step.workspace], step.zeroed, stream)
                step.launch(stream)
            device.calls[0] += 1
        return before

    def _effort_so_far(self, before: Effort | None, stream: int | None) -> Effort | None:
        self.device.synchronize(stream)
        effort = self.device.effort()
        return effort if before is None or effort is None else before + effort


def choose(
    plan: FusionPlan,
    binding: Binding,
    out: Array | None,
    spec: ArchSpec,
    request: Request,
) -> list[Choice]:
    """Return a problem and an algorithm for each kernel whose result has an element.

    Raises:
        CkValueError: A030-A036, strides; CkUnsupportedError: K101, K102, no algorithm.
    """
    chosen, copied = [], set[str]()
    for kernel, problem, placed, band in _launches(plan, binding, out):
        # What two kernels read in another order is copied once.
        before = tuple(copy for copy in placed.before if copy.target not in copied)
        copied |= {copy.target for copy in before}
        selection = find(problem, spec, request, kernel.epilogue)
        chosen.append(
            Choice(
                kernel=kernel,
                problem=problem,
                selection=selection,
                before=before,
                after=placed.after,
                band=band,
            )
        )
    return chosen


def problems(
    plan: FusionPlan, binding: Binding, out: Array | None
) -> Iterator[tuple[Kernel, AnyProblem, Band]]:
    """Yield each kernel whose result has an element, with its problem or each band of it.

    Raises:
        CkValueError: A030-A036, strides.
    """
    for kernel, problem, _, band in _launches(plan, binding, out):
        yield kernel, problem, band


def _launches(
    plan: FusionPlan, binding: Binding, out: Array | None
) -> Iterator[tuple[Kernel, AnyProblem, Arranged, Band]]:
    storage = storage_of(plan, binding, out)
    for kernel in plan.kernels:
        epilogue = epilogue_hash(kernel.epilogue)
        placed = arranged(kernel, storage)
        problem = problem_of_kernel(placed.kernel, placed.storage, binding.dims, epilogue)
        if isinstance(problem, Problem):
            for part, band in bands_of(problem):
                yield kernel, part, placed, band
        elif problem is not None:
            yield kernel, problem, placed, WHOLE


def prepare(
    plan: FusionPlan,
    binding: Binding,
    out: Array,
    device: Device,
    builder: Builder,
    request: Request,
) -> CallPlan:
    """Return the launches of a call, with every kernel built and loaded."""
    choices = choose(plan, binding, out, device.spec, request)
    work: list[Choice | Transposition] = []
    for choice in choices:
        work += [*choice.before, choice, *choice.after]
    artifacts = builder.build_all([_wanted(each, device.spec) for each in work])
    memory = _Memory(plan, binding)
    steps = [
        _copy_step(device, artifact, each, memory)
        if isinstance(each, Transposition)
        else _step(device, artifact, each, memory)
        for each, artifact in zip(work, artifacts, strict=True)
    ]
    pieces = [touched(array, written=False) for array in binding.arrays.values()]
    return CallPlan(
        device,
        steps,
        [*pieces, touched(out, written=True)],
        memory.temporaries,
        binding.place,
    )


def touched(array: Array, *, written: bool) -> Touched:
    """Return what a call touches of ``array``."""
    low, high = array.extent
    return Touched(low=low, high=high, written=written)


def _wanted(each: Choice | Transposition, spec: ArchSpec) -> Wanted:
    if isinstance(each, Transposition):
        return each.key(spec), NOTHING
    return each.selection.key, each.kernel.epilogue


class _Memory:
    """The addresses of a call: arguments, result, then memory that only the call has."""

    def __init__(self, plan: FusionPlan, binding: Binding) -> None:
        result = plan.kernels[-1].result.name
        self._slots = {name: i for i, name in enumerate([*binding.arrays, result])}
        self._given = len(self._slots)
        self.temporaries: list[int] = []
        """Their sizes in bytes."""
        for kernel in plan.kernels[:-1]:
            size = math.prod(kernel.result.type.extents(binding.dims))
            self.hold(kernel.result.name, size * kernel.result.type.dtype.bytes)

    def hold(self, name: str, size: int) -> int:
        """Return the index of the address of ``size`` bytes or more of its own, called ``name``."""
        if name not in self._slots:
            self._slots[name] = len(self._slots)
            self.temporaries.append(size)
        own = self._slots[name] - self._given
        if own >= 0:
            self.temporaries[own] = max(self.temporaries[own], size)
        return self._slots[name]

    def slot(self, name: str) -> int:
        """Return the index of the address of a value."""
        return self._slots[name]


def _step(device: Device, artifact: Artifact, choice: Choice, memory: _Memory) -> Step:
    kernel = loaded(device, artifact)
    shape = kernel.prepare(choice.problem)
    # A result that is copied afterwards stands in memory of the call's own.
    for copy in choice.after:
        memory.hold(copy.source, copy.size)
    patches = [
        (word, memory.slot(array.value))
        for array, words in zip(choice.problem.inputs, shape.pointers, strict=True)
        for word in words
    ]
    moves = [
        (word, bytes_)
        for bytes_, words in zip(choice.band.moves, shape.pointers, strict=False)
        for word in words
        if bytes_
    ]
    workspace = 0
    if shape.workspace_bytes:
        workspace = memory.hold(f"the workspace of {choice.kernel.name}", shape.workspace_bytes)
        patches += [(word, workspace) for word in shape.workspace]
    return Step(
        launch=device.launch(kernel.function, shape.grid, shape.block, shape.kernarg),
        patches=tuple(patches),
        record=LaunchRecord(
            artifact=artifact, problem=choice.problem, grid=shape.grid, block=shape.block
        ),
        workspace=workspace,
        zeroed=shape.zeroed_bytes,
        moves=tuple(moves),
    )


def _copy_step(device: Device, artifact: Artifact, copy: Transposition, memory: _Memory) -> Step:
    kernel = loaded_transpose(device, artifact)
    shape = kernel.prepare(copy)
    slots = memory.slot(copy.source), memory.hold(copy.target, copy.size)
    pairs = list(zip(slots, shape.pointers, strict=True))
    record = LaunchRecord(artifact=artifact, problem=copy, grid=shape.grid, block=shape.block)
    return Step(
        launch=device.launch(kernel.function, shape.grid, shape.block, shape.kernarg),
        patches=tuple((word, slot) for slot, words in pairs for word in words),
        record=record,
        workspace=0,
        zeroed=0,
    )


def storage_of(plan: FusionPlan, binding: Binding, out: Array | None) -> dict[str, Storage]:
    """Return how each argument, temporary and result of a call lies in memory, by value name."""
    storage = {name: stored(name, array) for name, array in binding.arrays.items()}
    for kernel in plan.kernels:
        # Memory of the call's own has a convolution's channels last, wherever the program has them.
        own = isinstance(kernel, FusedConv) and kernel is not plan.kernels[-1]
        order = kernel.axes if own else None
        storage[kernel.result.name] = packed(kernel.result, binding.dims, order)
    if out is not None:
        name = plan.kernels[-1].result.name
        storage[name] = stored("out", out)
    return storage


def stored(name: str, array: Array) -> Storage:
    """Return the storage of an array of the caller's."""
    return Storage(
        name=name,
        dtype=array.dtype,
        shape=array.shape,
        strides=array.strides,
        alignment=arrays.alignment_of(array.pointer),
        prepared=array.prepared,
        k_axis=array.k_axis,
    )


def packed(value: Value, dims: Mapping[str, int], order: Sequence[int] | None = None) -> Storage:
    """Return the storage of a value in new memory, its axes from the outermost in ``order``."""
    shape = value.type.extents(dims)
    return Storage(
        name=value.name,
        dtype=value.type.dtype,
        shape=shape,
        strides=packed_strides(shape, range(len(shape)) if order is None else order),
        alignment=arrays.alignment_of(0),
    )
