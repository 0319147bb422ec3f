# SPDX-License-Identifier: MIT
"""Built kernels in this process: loaded on a device, asked through their host shim how to launch.

Only the host shim knows how a kernel's arguments are laid out. Where it puts addresses is found by
giving it sentinels that no argument is likely to hold; the addresses of a call are written there.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cklang.device.artifact import Artifact
from cklang.device.device import Device, Function
from cklang.device.host_shim import HostShim, LaunchShape
from cklang.device.module_cache import load_cached
from cklang.errors import error
from cklang.families.stage import Stage

__all__ = ["Described", "describe", "described_stage"]

_WORD = 8
# Multiples of a page far above any address that a process has, and with no bit pattern of a size.
_SENTINEL, _SENTINEL_STEP = 0x5EED_C0DE_0000_0000, 0x0000_0001_0000_1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A loaded kernel, and how to launch it for one request."""

    artifact: Artifact
    function: Function
    shape: LaunchShape

    def words(self, index: int) -> tuple[int, ...]:
        """Return the 64-bit words of the kernel's argument that hold address ``index``.

        Raises:
            CkInternalError: D008, none does.
        """
        text = struct.pack("<Q", _sentinel(index))
        kernarg = self.shape.kernarg
        places = range(0, len(kernarg) - _WORD + 1, _WORD)
        words = tuple(at // _WORD for at in places if kernarg[at : at + _WORD] == text)
        if not words:
            raise error("D008", label=self.artifact.key.label, index=index)
        return words


def _sentinel(index: int) -> int:
    return _SENTINEL + index * _SENTINEL_STEP


def describe(
    device: Device,
    artifact: Artifact,
    shim: type[HostShim[Any]],
    request: Callable[[Sequence[int]], Any],
    count: int,
    problem: object,
) -> Described:
    """Load a kernel and ask its host shim how to launch it.

    Args:
        device: Where.
        artifact: The kernel; each is loaded once a process.
        shim: The class of its host shim.
        request: Gives what the shim is asked, for addresses.
        count: How many addresses.
        problem: What messages say that it is for.

    Raises:
        CkUnsupportedError: D007, CK Tile's own check or ours refuses the problem.
    """
    kernel = load_cached(device, artifact, shim)
    shape = kernel.shim.describe(request([_sentinel(index) for index in range(count)]))
    if isinstance(shape, str):
        raise error("D007", label=artifact.key.label, problem=problem, verdict=shape)
    return Described(artifact=artifact, function=kernel.function, shape=shape)


def described_stage(device: Device, artifact: Artifact, stage: Stage) -> Described:
    """Return how to launch a stage; its last address is that of its workspace.

    Raises:
        CkUnsupportedError: D007, its kernel refuses the problem.
    """
    count = len(stage.values) + 1
    return describe(device, artifact, stage.shim, stage.request, count, stage.problem)
