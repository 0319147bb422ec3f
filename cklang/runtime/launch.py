# SPDX-License-Identifier: MIT
"""Launches in numbers: what a kernel's host shim says of a problem, with every address left open.

Only the host shim knows how a kernel's arguments are laid out. Where it puts addresses is found by
giving it sentinels that no argument is likely to hold; the addresses of a call are written there.
No device is needed for this: a :class:`PlannedLaunch` is the same in each process.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cklang.device.module_cache import load_shim
from cklang.errors import error

if TYPE_CHECKING:
    from cklang.device.artifact import Artifact
    from cklang.device.host_shim import HostShim, LaunchShape
    from cklang.families.stage import Stage

_WORD = 8
# Multiples of a page far above any address that a process has, and with no bit pattern of a size.
_SENTINEL, _SENTINEL_STEP = 0x5EED_C0DE_0000_0000, 0x0000_0001_0000_1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A kernel, and how to launch it for one request."""

    artifact: Artifact
    shape: LaunchShape

    def words(self, index: int) -> tuple[int, ...]:
        """Return the 64-bit words of the kernel's argument that hold address ``index``.

        Raises:
            CkInternalError: D008, none does.
        """
        text = struct.pack("<Q", sentinel(index))
        kernarg = self.shape.kernarg
        places = range(0, len(kernarg) - _WORD + 1, _WORD)
        words = tuple(at // _WORD for at in places if kernarg[at : at + _WORD] == text)
        if not words:
            raise error("D008", label=self.artifact.key.label, index=index)
        return words


def sentinel(index: int) -> int:
    """Return the number that stands for address ``index`` until it is known."""
    return _SENTINEL + index * _SENTINEL_STEP


def describe(
    artifact: Artifact,
    shim: type[HostShim[Any]],
    request: Callable[[Sequence[int]], Any],
    count: int,
    problem: object,
) -> Described:
    """Ask a kernel's host shim how to launch it.

    ``request`` gives what the shim is asked, for ``count`` addresses; ``problem`` is what messages
    say that it is for.
    """
    host = load_shim(artifact, shim)
    shape = host.describe(request([sentinel(index) for index in range(count)]))
    if isinstance(shape, str):
        raise error("D007", label=artifact.key.label, problem=problem, verdict=shape)
    return Described(artifact=artifact, shape=shape)


def described_stage(artifact: Artifact, stage: Stage) -> Described:
    """Return how to launch a stage; its last address is that of its workspace."""
    count = len(stage.values) + 1
    return describe(artifact, stage.shim, stage.request, count, stage.problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLaunch:
    """One launch of a call in numbers; its addresses are those of the call, by their indices."""

    grid: tuple[int, int, int]
    """Workgroups."""
    block: tuple[int, int, int]
    """Threads of a workgroup."""
    kernarg: bytes
    """The kernel's argument; what stands where addresses go means nothing."""
    patches: tuple[tuple[int, int], ...]
    """(index of a 64-bit word, index of the address that goes there)."""
    moves: tuple[tuple[int, int], ...] = ()
    """(index of a 64-bit word, bytes to add to its address), for a band of a product."""
    constants: tuple[tuple[int, int | range], ...] = ()
    """(index of a 64-bit word, the numbers in device memory whose address goes there)."""
    clears: tuple[tuple[int, int], ...] = ()
    """(index of an address, how many bytes there must be 0 before each launch)."""
    workspace: int = 0
    """Index of the address of its workspace."""


def planned_launch(
    described: Described, stage: Stage, slots: Mapping[str, int], own: int, sizes: Mapping[str, int]
) -> PlannedLaunch:
    """Return a launch in which the places of addresses are known.

    Args:
        described: What the host shim says of the stage.
        stage: What is launched.
        slots: The index of the address of each value of the call.
        own: The index of the address of its workspace, if it has one.
        sizes: The bytes of the values that only the call has.
    """
    shape = described.shape
    patches: list[tuple[int, int]] = []
    moves: list[tuple[int, int]] = []
    constants: list[tuple[int, int | range]] = []
    for place, name in enumerate(stage.values):
        offset = stage.offsets[place] if stage.offsets else 0
        for word in described.words(place):
            if name in stage.constants:
                constants.append((word, stage.constants[name]))
            else:
                patches.append((word, slots[name]))
            if offset:
                moves.append((word, offset))
    clears: list[tuple[int, int]] = []
    if shape.workspace_bytes:
        clears.append((own, shape.zeroed_bytes))
        patches += [(word, own) for word in described.words(len(stage.values))]
    for name in stage.zeroed:
        clears.append((slots[name], stage.temporaries.get(name, sizes.get(name, 0))))
    return PlannedLaunch(
        grid=shape.grid,
        block=shape.block,
        kernarg=shape.kernarg,
        patches=tuple(patches),
        moves=tuple(moves),
        constants=tuple(constants),
        clears=tuple(clear for clear in clears if clear[1]),
        workspace=own,
    )
