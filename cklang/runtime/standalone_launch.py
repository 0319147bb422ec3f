# SPDX-License-Identifier: MIT
"""Kernels on given addresses, without a call around them: for timing and for self tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from cklang.device.artifact import Artifact
from cklang.device.device import Device, Effort, Launch
from cklang.families.stage import Stage
from cklang.runtime.launch import described_stage

__all__ = ["standalone_launch"]


@contextmanager
def standalone_launch(
    device: Device,
    stages: Sequence[Stage],
    artifacts: Sequence[Artifact],
    addresses: Mapping[str, int],
    sizes: Mapping[str, int] | None = None,
) -> Iterator[Callable[[], Effort | None]]:
    """Give a function that launches ``stages`` on the default stream, any number of times.

    It returns what emulating all of them but the last took; the device knows of the last.

    Args:
        device: Where.
        stages: What is launched, in order.
        artifacts: Their kernels.
        addresses: Of each value on the device; workspaces are the launches' own.
        sizes: The bytes of values that a stage wants zeroed.

    Raises:
        CkUnsupportedError: D007, CK Tile refuses a problem.
    """
    launches: list[Launch] = []
    zeroed: list[tuple[int, int]] = []
    own: list[int] = []
    for stage, artifact in zip(stages, artifacts, strict=True):
        described = described_stage(device, artifact, stage)
        shape = described.shape
        launch = device.launch(described.function, shape.grid, shape.block, shape.kernarg)
        for place, name in enumerate(stage.values):
            offset = stage.offsets[place] if stage.offsets else 0
            for word in described.words(place):
                launch.words[word] = addresses[name] + offset
        clear = (0, 0)
        if shape.workspace_bytes:
            own.append(device.allocate(shape.workspace_bytes))
            for word in described.words(len(stage.values)):
                launch.words[word] = own[-1]
            clear = own[-1], shape.zeroed_bytes
        elif stage.zeroed:
            clear = addresses[stage.zeroed], (sizes or stage.temporaries)[stage.zeroed]
        launches.append(launch)
        zeroed.append(clear)

    def run() -> Effort | None:
        before: Effort | None = None
        device.activate()
        for place, (launch, (address, size)) in enumerate(zip(launches, zeroed, strict=True)):
            if place and device.emulated:
                device.synchronize()
                effort = device.effort()
                before = effort if before is None or effort is None else before + effort
            if size:
                device.clear(address, size, None)
            launch(None)
        return before

    try:
        yield run
        device.synchronize()
    finally:
        for address in own:
            device.free(address)
