# SPDX-License-Identifier: MIT
"""From a bound call to launches: made once for a problem, then repeated without looking again.

A :class:`CallPlan` holds the launches of a call in order with their argument bytes. A repeated
call writes its addresses into them and launches; nothing else is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

from cklang import forks, knobs
from cklang.device.arrays import HOST, Array
from cklang.device.constants import Cell, cell
from cklang.device.device import PAST_LAUNCHES, Device, Launch, LaunchCounters
from cklang.device.launch_sequence import LaunchSequence, Patch, launch_sequence
from cklang.device.module_cache import load_function
from cklang.device.staging import HostRegion, staged
from cklang.errors import CkDeviceError
from cklang.runtime.fault_places import Region, Tensor, first_uses, tensor_at
from cklang.runtime.record import LaunchRecord
from cklang.toolchain import progress
from cklang.toolchain.progress import Wait

if TYPE_CHECKING:
    from cklang.device.artifact import Artifact
    from cklang.device.pinned_buffers import Upload
    from cklang.ir.nodes import Function
    from cklang.keys import AnyKey
    from cklang.runtime.bind import Binding
    from cklang.runtime.launch import PlannedLaunch
    from cklang.runtime.workspace import Workspace

_REPEATED = 3
"""A call's launches become one sequence when the call is made for the third time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One launch on a device."""

    launch: Launch
    planned: PlannedLaunch
    record: LaunchRecord
    table: Upload | None = None
    """What a group of products reads its arguments from, at the place of its workspace."""
    constants: tuple[Cell, ...] = ()
    """Memory that its arguments name and that must live as long as it can be launched."""

    @property
    def bare(self) -> bool:
        """Whether it is a launch alone, with nothing to clear or to copy before it."""
        return self.table is None and not self.planned.clears

    def put(self, addresses: Sequence[int]) -> None:
        """Write the addresses of a call into the argument words."""
        words = self.launch.words
        for word, address in self.planned.patches:
            words[word] = addresses[address]
        for word, bytes_ in self.planned.moves:
            words[word] += bytes_


def step_on(
    device: Device,
    artifact: Artifact,
    planned: PlannedLaunch,
    purpose: Callable[[], object],
    awaited: AnyKey | None = None,
) -> Step:
    """Return a launch on a device, with its kernel loaded and its constants in memory.

    ``awaited`` is a better kernel for it, which is being built.
    """
    function = load_function(device, artifact)
    launch = device.launch(function, planned.grid, planned.block, planned.kernarg)
    cells = {word: cell(device, number) for word, number in planned.constants}
    for word, memory in cells.items():
        launch.words[word] = memory.address
    record = LaunchRecord(
        artifact=artifact, purpose=purpose, grid=planned.grid, block=planned.block, awaited=awaited
    )
    constants = tuple(cells.values())
    return Step(launch=launch, planned=planned, record=record, constants=constants)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRange:
    """What a call touches of one argument, relative to its address."""

    low: int
    high: int
    written: bool
    tensor: Tensor | None = None
    """What it is to the user, for reports; None for memory of cklang's own."""


class CallPlan:
    """The launches of one call; addresses are those of the arguments, then those of the results."""

    def __init__(
        self,
        device: Device,
        steps: Sequence[Step],
        touched: Sequence[AccessRange],
        workspace: Workspace,
        place: str,
        outs: int = 1,
        same: Collection[tuple[int, int]] = (),
    ) -> None:
        self.device = device
        self.touched = tuple(touched)
        # How far from a result's address an argument's may not be.
        first = len(touched) - outs
        self._meeting = tuple(
            (here, there, out.low - other.high, out.high - other.low)
            for here, out in enumerate(touched)
            if here >= first
            for there, other in enumerate(touched[:here])
            if (here, there) not in same
        )
        self.place = place
        self.steps = tuple(steps)
        self.workspace = workspace
        self._copies = place == HOST and not device.host_memory
        self.counts = bool(steps) and device.emulated and place == HOST
        """Whether it is known what a call took: a call with a GPU's arrays waits for nothing."""
        # The emulator remembers what a few launches took; only of more each is asked for.
        self._counts_each = self.counts and len(self.steps) > PAST_LAUNCHES
        self._promise_to_wait = device.promise_to_wait
        self._wait = Wait(_title(device, self.steps), count=device.workgroups)
        self._runs = 0
        self._sequence: LaunchSequence | None = None
        self._lock = forks.lock()

    @property
    def records(self) -> tuple[LaunchRecord, ...]:
        """What is launched, in order."""
        return tuple(step.record for step in self.steps)

    def overlaps(self, addresses: Sequence[int]) -> bool:
        """Whether the span of a result meets that of an argument, or of a result before it."""
        for here, there, low, high in self._meeting:
            if low < addresses[there] - addresses[here] < high:
                return True
        return False

    def overlapping(self, addresses: Sequence[int]) -> tuple[int, int] | None:
        """Return the places of a result and of what it overlaps so; None if nothing does."""
        for here, there, low, high in self._meeting:
            if low < addresses[there] - addresses[here] < high:
                return here, there
        return None

    def run(self, addresses: list[int], stream: int | None) -> LaunchCounters | None:
        """Launch everything, in order with ``stream``.

        Results in host memory are there when this returns; for others nothing is waited for.

        Returns:
            What emulating the launches took, if :meth:`counters` cannot ask for it afterwards.
        """
        if not self.steps:
            return None
        if self._copies or "memory" in knobs.CHECKS_NOW or knobs.RECORDINGS_NOW:
            return self._run_with_copies(addresses, stream)
        if self.place != HOST:
            return self._launch_with_memory(addresses, stream, counts=False)
        device, workspace = self.device, self.workspace
        if not workspace.bytes:
            return self._launch_and_wait(addresses, stream)
        try:
            memory = device.borrow(workspace.bytes)
        except CkDeviceError as refusal:
            raise workspace.explained(device, refusal) from refusal
        addresses = addresses.copy()
        for offset in workspace.offsets:
            addresses.append(memory + offset)
        try:
            counters = self._launch_and_wait(addresses, stream)
        except BaseException:
            # Kernels may still use the memory.
            device.free_in_order(memory, stream)
            raise
        device.release(workspace.bytes, memory)
        return counters

    def _launch_and_wait(self, addresses: list[int], stream: int | None) -> LaunchCounters | None:
        # What `with wait:` does, without its functions: this is the path of every repeated call.
        wait = self._wait
        wait.start = perf_counter()
        progress.waits.append(wait)
        if progress.asleep:
            progress.wake()
        try:
            sequence = self._sequence
            if sequence is None:
                sequence = self._sequence_of_a_repeated_call()
            if sequence is not None:
                with self._lock:
                    sequence(addresses, stream, waits=True)
                    self.device.calls[0] += 1
                return None
            self._promise_to_wait(1)
            try:
                counters = self._launch(addresses, stream, counts=self._counts_each)
                self.device.synchronize(stream)
            except BaseException:
                self._promise_to_wait(0)
                raise
            return counters
        finally:
            progress.waits.remove(wait)
            if wait.shown:
                wait.clear()

    def _sequence_of_a_repeated_call(self) -> LaunchSequence | None:
        """Return the launches as one sequence if they are repeated and can be one."""
        self._runs += 1
        if self._runs != _REPEATED or self._counts_each:
            return None
        if not all(step.bare for step in self.steps):
            return None
        patches = [
            Patch(
                launch=launch,
                word=word,
                address=address,
                offset=dict(step.planned.moves).get(word, 0),
            )
            for launch, step in enumerate(self.steps)
            for word, address in step.planned.patches
        ]
        launches = [step.launch for step in self.steps]
        self._sequence = launch_sequence(self.device, launches, patches)
        return self._sequence

    def counters(self, before: LaunchCounters | None) -> LaunchCounters | None:
        """Return what emulating the last call on the device took; None if nobody counts.

        Its :meth:`run` gave ``before``.
        """
        if not self.counts:
            return None
        if before is None:
            return self.device.counters(len(self.steps))
        last = self.device.counters()
        return before if last is None else before + last

    def _run_with_copies(
        self, addresses: Sequence[int], stream: int | None
    ) -> LaunchCounters | None:
        with self._memory(addresses, apart=self.place == HOST) as places:
            try:
                with self._wait:
                    counters = self._launch_with_memory(places, stream, counts=self._counts_each)
                    if self.place == HOST:
                        self.device.synchronize(stream)
            except CkDeviceError as fault:
                raise self._named(fault, places) from fault
        return counters

    def _named(self, fault: CkDeviceError, places: Sequence[int]) -> CkDeviceError:
        """Return a fault that says in which tensor of the call its address lies."""
        regions = [
            Region(tensor=piece.tensor, address=place, low=piece.low, high=piece.high)
            for place, piece in zip(places, self.touched, strict=True)
            if piece.tensor is not None
        ]
        return tensor_at(fault, regions)

    def _memory(
        self, addresses: Sequence[int], *, apart: bool = False
    ) -> AbstractContextManager[list[int]]:
        """Give the addresses at which kernels find what is at ``addresses``.

        With ``apart`` they are copies even where the device could use the memory itself: each has
        an allocation of its own then, beyond which the emulator's check of memory sees, and whose
        lines lie as they do on a GPU.
        """
        if not self._copies and not apart:
            return nullcontext(list(addresses))
        regions = [
            HostRegion(pointer=address, low=piece.low, high=piece.high, written=piece.written)
            for address, piece in zip(addresses, self.touched, strict=True)
        ]
        return staged(self.device, regions)

    @contextmanager
    def ready(
        self, addresses: Sequence[int], stream: int | None = None
    ) -> Iterator[Callable[[], LaunchCounters | None]]:
        """Give a function that launches everything, any number of times, on memory that is there.

        It returns what emulating all launches but the last took; whoever calls it waits for the
        device inside the block.
        """
        with self._memory(addresses) as places:
            yield partial(self._launch_with_memory, places, stream, counts=self.counts)

    def record(self, addresses: Sequence[int], stream: int) -> None:
        """Launch everything on a stream that is recorded; the last addresses are temporaries'."""
        self._launch(addresses, stream, counts=False)

    def _launch_with_memory(
        self, addresses: list[int], stream: int | None, *, counts: bool
    ) -> LaunchCounters | None:
        """Launch with memory of the call's own, which the stream takes and gives back in order."""
        workspace, device = self.workspace, self.device
        if not workspace.bytes:
            return self._launch(addresses, stream, counts=counts)
        device.activate()
        try:
            memory = device.allocate_in_order(workspace.bytes, stream)
        except CkDeviceError as refusal:
            raise workspace.explained(device, refusal) from refusal
        try:
            own = [memory + offset for offset in workspace.offsets]
            return self._launch([*addresses, *own], stream, counts=counts)
        finally:
            device.free_in_order(memory, stream)

    def _launch(
        self, addresses: Sequence[int], stream: int | None, *, counts: bool
    ) -> LaunchCounters | None:
        device, before = self.device, None
        with self._lock:
            device.activate()
            for index, step in enumerate(self.steps):
                if counts and index:
                    before = self._effort_so_far(before, stream)
                step.put(addresses)
                if step.table is not None:
                    step.table.send(addresses[step.planned.workspace], addresses, stream)
                for address, size in step.planned.clears:
                    device.clear(addresses[address], size, stream)
                step.launch(stream)
            device.calls[0] += 1
        return before

    def _effort_so_far(
        self, before: LaunchCounters | None, stream: int | None
    ) -> LaunchCounters | None:
        self.device.synchronize(stream)
        counters = self.device.counters()
        return counters if before is None or counters is None else before + counters


def _title(device: Device, steps: Sequence[Step]) -> str:
    """Say what a call waits for."""
    label = steps[0].record.key.label if steps else ""
    more = f" and {len(steps) - 1} more" if len(steps) > 1 else ""
    return f"running {label}{more} on the {device}"


def access_range(array: Array, *, written: bool, tensor: Tensor | None = None) -> AccessRange:
    """Return what a call touches of ``array``, which is ``tensor`` to the user."""
    low, high = array.extent
    return AccessRange(low=low, high=high, written=written, tensor=tensor)


def access_ranges(function: Function, binding: Binding, outs: Sequence[Array]) -> list[AccessRange]:
    """Return what a call touches of its arguments and then of its results."""
    spans = first_uses(function)
    pieces = [
        access_range(array, written=False, tensor=Tensor.of(name, array, spans.get(name)))
        for name, array in binding.arrays.items()
    ]
    pieces += [
        access_range(out, written=True, tensor=Tensor.of(value.name, out, spans.get(value.name)))
        for out, value in zip(outs, function.results, strict=True)
    ]
    return pieces
