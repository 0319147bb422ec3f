# SPDX-License-Identifier: MIT
"""From a bound call to launches: made once for a problem, then repeated without looking again.

A :class:`CallPlan` holds the launches of a call in order with their argument bytes. A repeated
call writes its addresses into them and launches; nothing else is touched.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

from cklang.device.arrays import HOST, Array
from cklang.device.device import Device, Effort, Launch
from cklang.device.pinned_buffers import Upload
from cklang.device.staging import Region, staged
from cklang.runtime.record import LaunchRecord
from cklang.runtime.workspace import Workspace

__all__ = ["CallPlan", "Step", "Touched", "touched"]


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
        workspace: Workspace,
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
        self._workspace = workspace
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
        workspace, device = self._workspace, self.device
        if not workspace.bytes:
            return self._launch(addresses, stream)
        device.activate()
        memory = device.allocate_in_order(workspace.bytes, stream)
        try:
            own = [memory + offset for offset in workspace.offsets]
            return self._launch([*addresses, *own], stream)
        finally:
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


def touched(array: Array, *, written: bool) -> Touched:
    """Return what a call touches of ``array``."""
    low, high = array.extent
    return Touched(low=low, high=high, written=written)
