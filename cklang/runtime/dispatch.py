# SPDX-License-Identifier: MIT
"""From a bound call to launches: made once for a problem, then repeated without looking again.

A :class:`CallPlan` holds the launches of a call in order with their argument bytes. A repeated
call writes its addresses into them and launches; nothing else is touched.
"""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cklang.arch import ArchSpec
from cklang.fusion.plan import FusionPlan, Kernel, epilogue_hash
from cklang.ir.nodes import Value
from cklang.keys import KernelKey
from cklang.runtime import arrays
from cklang.runtime.arrays import HOST, Array
from cklang.runtime.bind import Binding
from cklang.runtime.convolution import AnyProblem, problem_of_kernel
from cklang.runtime.device import Device, Effort, Launch
from cklang.runtime.launch import loaded
from cklang.runtime.problem import Storage
from cklang.runtime.record import LaunchRecord
from cklang.runtime.select import Request, Selection, find
from cklang.runtime.transfer import Region, staged
from cklang.types import Dim

if TYPE_CHECKING:
    from cklang.runtime.build import Builder

__all__ = [
    "CallPlan",
    "Choice",
    "Step",
    "Table",
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


@dataclass(slots=True)
class Table:
    """Rows of arguments that a launch reads in device memory; each call writes its addresses."""

    rows: bytearray
    patches: tuple[tuple[int, int], ...]
    """(index of a 64-bit word, index of an address)."""
    slot: int
    """Index of the address of its place in device memory."""

    @property
    def bytes(self) -> int:
        """Its size."""
        return len(self.rows)

    def write(self, device: Device, addresses: Sequence[int]) -> None:
        """Put the rows of a call where the launch reads them."""
        words = memoryview(self.rows).cast("Q")
        for word, address in self.patches:
            words[word] = addresses[address]
        first = ctypes.addressof(ctypes.c_char.from_buffer(self.rows))
        device.copy_in(addresses[self.slot], first, len(self.rows))


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
    table: Table | None = None
    """What a group of products reads its arguments from."""


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
        """Launch everything; results in host memory are there when this returns.

        Returns:
            What emulating all launches but the last took; the last one's is asked for only when
            somebody wants to know.
        """
        if not self._steps:
            return None
        if self._copies:
            return self._run_with_copies(addresses, stream)
        held = [self.device.allocate(size) for size in self._temporaries]
        try:
            effort = self._launch([*addresses, *held] if held else addresses, stream)
            if self.place == HOST or held:
                self.device.synchronize(stream)
            return effort
        finally:
            for memory in held:
                self.device.free(memory)

    def _run_with_copies(self, addresses: Sequence[int], stream: int | None) -> Effort | None:
        regions = [
            Region(pointer=address, low=piece.low, high=piece.high, written=piece.written)
            for address, piece in zip(addresses, self.touched, strict=True)
        ]
        # Temporaries are staged like an argument that nobody reads back.
        held = [self.device.allocate(size) for size in self._temporaries]
        try:
            with staged(self.device, regions) as copies:
                effort = self._launch([*copies, *held], stream)
                self.device.synchronize(stream)
            return effort
        finally:
            for memory in held:
                self.device.free(memory)

    def _launch(self, addresses: Sequence[int], stream: int | None) -> Effort | None:
        device, before = self.device, None
        with self._lock:
            device.activate()
            for index, step in enumerate(self._steps):
                if index and device.emulated:
                    before = self._effort_so_far(before, stream)
                words = step.launch.words
                for word, address in step.patches:
                    words[word] = addresses[address]
                if step.table is not None:
                    step.table.write(device, addresses)
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
    return [
        Choice(
            kernel=kernel,
            problem=problem,
            selection=find(problem, spec, request, kernel.epilogue),
        )
        for kernel, problem in problems(plan, binding, out)
    ]


def problems(
    plan: FusionPlan, binding: Binding, out: Array | None
) -> Iterator[tuple[Kernel, AnyProblem]]:
    """Yield each kernel whose result has an element, with its problem.

    Raises:
        CkValueError: A030-A036, strides.
    """
    storage = storage_of(plan, binding, out)
    for kernel in plan.kernels:
        epilogue = epilogue_hash(kernel.epilogue)
        problem = problem_of_kernel(kernel, storage, binding.dims, epilogue)
        if problem is not None:
            yield kernel, problem


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
    artifacts = builder.build_all(
        [(choice.selection.key, choice.kernel.epilogue) for choice in choices]
    )
    slots = _slots(plan, binding)
    temporaries = _temporaries(plan, binding.dims)
    steps = []
    for choice, artifact in zip(choices, artifacts, strict=True):
        kernel = loaded(device, artifact)
        shape = kernel.prepare(choice.problem)
        launch = device.launch(kernel.function, shape.grid, shape.block, shape.kernarg)
        patches = [
            (word, slots[array.value])
            for array, words in zip(choice.problem.inputs, shape.pointers, strict=True)
            for word in words
        ]
        workspace = len(binding.arrays) + 1 + len(temporaries)
        if shape.workspace_bytes:
            temporaries.append(shape.workspace_bytes)
            patches += [(word, workspace) for word in shape.workspace]
        record = LaunchRecord(
            artifact=artifact, problem=choice.problem, grid=shape.grid, block=shape.block
        )
        steps.append(
            Step(
                launch=launch,
                patches=tuple(patches),
                record=record,
                workspace=workspace,
                zeroed=shape.zeroed_bytes,
            )
        )
    pieces = [touched(array, written=False) for array in binding.arrays.values()]
    return CallPlan(
        device,
        steps,
        [*pieces, touched(out, written=True)],
        temporaries,
        binding.place,
    )


def touched(array: Array, *, written: bool) -> Touched:
    """Return what a call touches of ``array``."""
    low, high = array.extent
    return Touched(low=low, high=high, written=written)


def _slots(plan: FusionPlan, binding: Binding) -> dict[str, int]:
    """Return the index of each value's address: arguments, result, then temporaries."""
    names = [*binding.arrays, plan.kernels[-1].result.name]
    names += [kernel.result.name for kernel in plan.kernels[:-1]]
    return {name: index for index, name in enumerate(names)}


def _shape(value: Value, dims: Mapping[str, int]) -> tuple[int, ...]:
    shape = value.type.shape
    return tuple(dims[extent.name] if isinstance(extent, Dim) else extent for extent in shape)


def _temporaries(plan: FusionPlan, dims: Mapping[str, int]) -> list[int]:
    """Return the size in bytes of what each kernel but the last writes."""
    sizes = []
    for kernel in plan.kernels[:-1]:
        sizes.append(math.prod(_shape(kernel.result, dims)) * kernel.result.type.dtype.bytes)
    return sizes


def storage_of(plan: FusionPlan, binding: Binding, out: Array | None) -> dict[str, Storage]:
    """Return how each argument, temporary and result of a call lies in memory, by value name."""
    storage = {name: stored(name, array) for name, array in binding.arrays.items()}
    for kernel in plan.kernels:
        storage[kernel.result.name] = packed(kernel.result, binding.dims)
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


def packed(value: Value, dims: Mapping[str, int]) -> Storage:
    """Return the storage of a value in new memory."""
    shape = _shape(value, dims)
    return Storage(
        name=value.name,
        dtype=value.type.dtype,
        shape=shape,
        strides=tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape))),
        alignment=arrays.alignment_of(0),
    )
