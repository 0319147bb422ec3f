# SPDX-License-Identifier: MIT
"""Kernels on given addresses, without a call around them: for timing and for self tests."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from cklang.device.artifact import Artifact
from cklang.device.device import Device, Launch, LaunchCounters
from cklang.device.module_cache import load_function
from cklang.families.stage import Stage
from cklang.runtime.launch import described_stage


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One launch, and the memory that is set to 0 before it."""

    launch: Launch
    clears: tuple[tuple[int, int], ...] = ()
    """(address, how many bytes)."""


@contextmanager
def standalone_launch(
    device: Device,
    stages: Sequence[Stage],
    artifacts: Sequence[Artifact],
    addresses: Mapping[str, int],
    sizes: Mapping[str, int] | None = None,
) -> Iterator[Callable[[], LaunchCounters | None]]:
    """Give a function that launches ``stages`` on the default stream, any number of times.

    It returns what emulating all of them but the last took; the device knows of the last.

    ``sizes`` are the bytes of values that a stage wants zeroed; the stages' own if none are given.

    Raises:
        CkUnsupportedError: D007, CK Tile refuses a problem.
    """
    with ExitStack() as workspaces:
        steps = [
            _step(device, stage, artifact, addresses, sizes, workspaces)
            for stage, artifact in zip(stages, artifacts, strict=True)
        ]
        yield lambda: _run(device, steps)
        device.synchronize()


def _step(
    device: Device,
    stage: Stage,
    artifact: Artifact,
    addresses: Mapping[str, int],
    sizes: Mapping[str, int] | None,
    workspaces: ExitStack,
) -> _Step:
    """Load a stage's kernel and write the addresses into its arguments.

    If it needs a workspace, one is allocated, and freed when ``workspaces`` closes.
    """
    described = described_stage(artifact, stage)
    shape, function = described.shape, load_function(device, artifact)
    launch = device.launch(function, shape.grid, shape.block, shape.kernarg)
    for place, name in enumerate(stage.values):
        offset = stage.offsets[place] if stage.offsets else 0
        for word in described.words(place):
            launch.words[word] = addresses[name] + offset
    if shape.workspace_bytes:
        workspace = device.allocate(shape.workspace_bytes)
        workspaces.callback(device.free, workspace)
        for word in described.words(len(stage.values)):
            launch.words[word] = workspace
        return _Step(launch=launch, clears=((workspace, shape.zeroed_bytes),))
    known = sizes or stage.temporaries
    clears = tuple((addresses[name], known[name]) for name in stage.zeroed)
    return _Step(launch=launch, clears=clears)


def _run(device: Device, steps: Sequence[_Step]) -> LaunchCounters | None:
    before: LaunchCounters | None = None
    device.activate()
    for place, step in enumerate(steps):
        if place and device.emulated:
            device.synchronize()
            counters = device.counters()
            before = counters if before is None or counters is None else before + counters
        for address, size in step.clears:
            if size:
                device.clear(address, size, None)
        step.launch(None)
    return before
