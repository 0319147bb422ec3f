# SPDX-License-Identifier: MIT
"""Launches one after the other, and what each finds in the caches that those before have filled."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from cklang.arch import ArchSpec, arch
from cklang.emulator.clock.constants import constants_of
from cklang.emulator.clock.hierarchy import EMPTY, Kept, chiplet_bytes, retained
from cklang.emulator.clock.kernel import LaunchDetail, launch_detail
from cklang.emulator.clock.touched import TouchedMemory, by_array, touched_memory
from cklang.emulator.engine.recording import RecordedLaunch
from cklang.errors import error

WARM, COLD, IN_CALL = CACHES = ("warm", "cold", "as in the call")
"""What launches find in the caches: what another such launch leaves there, nothing, or what those
before leave, where all of them are repeated in a circle."""
_FAR_BACK = 256
"""Launches after which nothing is looked for in the caches."""


def launch_details(
    launches: Sequence[RecordedLaunch],
    *,
    caches: str | None = None,
    board: str | None = None,
    spec: ArchSpec | None = None,
    footprint: int | None = None,
) -> list[LaunchDetail]:
    """Put some workgroups of each launch on a compute unit.

    Args:
        launches: What was recorded, in order.
        caches: One of :data:`CACHES`; by default a single launch is warm, and of several each
            finds what those before it leave.
        board: With the GPU, as ``constants_of`` takes it.
        spec: The GPU; by default the one that recorded, on that board.
        footprint: Bytes of the operands of each launch; by default those that it touches.
    """
    if caches is not None and caches not in CACHES:
        raise error("A133", got=caches, known=", ".join(map(repr, CACHES)))
    in_call = caches == IN_CALL or (caches is None and len(launches) > 1)
    fixed = EMPTY if caches == COLD else None
    circles: defaultdict[str, Circle] = defaultdict(Circle)
    details = []
    for launch in by_array(launches):
        gpu = arch(launch.gpu)
        circle = circles[gpu.name]
        detail = launch_detail(
            launch,
            spec or _on_board(gpu, board),
            constants_of(gpu.name, board),
            footprint,
            kept=partial(circle.kept, len(circle.details)) if in_call else fixed,
        )
        circle.details.append(detail)
        details.append(detail)
    return details


def _on_board(gpu: ArchSpec, board: str | None) -> ArchSpec:
    return gpu if board is None else gpu.on_board(board)


@dataclass(frozen=True, slots=True)
class Use:
    """What a launch does with memory."""

    kernel: tuple[str, int, tuple[int, int, int]]
    """Its name, code and grid: launches with the same ones divide arrays alike among chiplets."""
    memory: Mapping[int, TouchedMemory]
    """By address."""
    bytes: float
    """The bytes of all of it."""
    chiplet_bytes: float
    """Bytes that it brings into the L2 of a chiplet."""


def _use_of(detail: LaunchDetail) -> Use:
    touched = touched_memory(detail.launch, detail.heads, detail.access_kinds)
    loaded, stored = detail.moved
    workgroups = prod(detail.launch.groups)
    written = stored * workgroups
    distinct = max(detail.footprint - written, loaded)
    return Use(
        (detail.launch.kernel, hash(detail.launch.code), detail.launch.groups),
        {memory.begin: memory for memory in touched},
        sum(memory.bytes for memory in touched),
        chiplet_bytes(detail.spec, workgroups, loaded, written, distinct),
    )


class Circle:
    """Launches on one GPU that are repeated in a circle: the first one follows the last one."""

    def __init__(self) -> None:
        self.details: list[LaunchDetail] = []
        self._uses: dict[int, Use] = {}

    def use(self, at: int) -> Use:
        """Return what a launch does with memory."""
        if at not in self._uses:
            self._uses[at] = _use_of(self.details[at])
        return self._uses[at]

    def kept(self, at: int) -> Kept:
        """Return what a launch finds in the caches."""
        return kept_by(self.use, len(self.details), at, self.details[at].spec)


def kept_by(use: Callable[[int], Use], count: int, at: int, spec: ArchSpec) -> Kept:
    """Return what caches hold of the memory that a launch touches.

    A line is there if caches have room for all that was accessed since. An array is accessed from
    end to end by the launch before and by this one, so half of each comes in between.

    Args:
        use: What each launch of a circle does.
        count: Launches of the circle.
        at: The launch.
        spec: The GPU.
    """
    here = use(at)
    l2: dict[int, float] = {}
    last_level: dict[int, float] = {}
    between: dict[int, float] = {}
    """Bytes of memory of the launches in between."""
    between_in_l2 = 0.0
    for back in range(1, min(count, _FAR_BACK) + 1):
        before = use((at - back) % count)
        for begin in (here.memory.keys() & before.memory.keys()) - last_level.keys():
            others = sum(
                size
                for other, size in between.items()
                if other not in here.memory and other not in before.memory
            )
            far_bytes = others + (before.bytes + here.bytes) / 2
            near_bytes = between_in_l2 + (before.chiplet_bytes + here.chiplet_bytes) / 2
            last_level[begin] = retained(far_bytes / spec.last_level_cache_bytes)
            l2[begin] = retained(near_bytes / spec.l2_bytes) * _share_in_l2(
                before.memory[begin], spec, same=before.kernel == here.kernel
            )
        if len(last_level) == len(here.memory):
            break
        between |= {begin: memory.bytes for begin, memory in before.memory.items()}
        between_in_l2 += before.chiplet_bytes
    read = {begin: memory.bytes for begin, memory in here.memory.items() if memory.loaded}
    touched = {begin: memory.bytes for begin, memory in here.memory.items()}
    return Kept(_mean(l2, read), _mean(last_level, touched))


def _share_in_l2(memory: TouchedMemory, spec: ArchSpec, *, same: bool) -> float:
    """Return the share of an array that a launch has brought into the L2 where it is read next.

    Lines that it wrote leave the L2 at its end. Another kernel reads a line on any chiplet.
    """
    if memory.stored:
        return 0.0
    return 1.0 if same else min(1.0, memory.loaded / spec.chiplets / memory.bytes)


def _mean(shares: Mapping[int, float], weights: Mapping[int, float]) -> float:
    """Return the mean of shares; those that lack are 0."""
    total = sum(weights.values())
    return sum(shares.get(key, 0.0) * weight for key, weight in weights.items()) / (total or 1.0)
