# SPDX-License-Identifier: MIT
"""One kernel on given addresses, without a call around it: for timing and for self tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from cklang.build.record import Artifact
from cklang.device.device import Device
from cklang.families.conv.problem import AnyProblem
from cklang.families.gemm.launch import loaded

__all__ = ["bare_launch"]


@contextmanager
def bare_launch(
    device: Device, artifact: Artifact, problem: AnyProblem, addresses: Sequence[int]
) -> Iterator[Callable[[], None]]:
    """Give a function that launches ``artifact`` on the default stream, any number of times.

    Args:
        device: Where.
        artifact: The kernel.
        problem: What it computes.
        addresses: Of the problem's arrays on the device; the workspace is the launch's own.

    Raises:
        CkUnsupportedError: D007, CK Tile refuses the problem.
    """
    kernel = loaded(device, artifact)
    shape = kernel.prepare(problem)
    launch = device.launch(kernel.function, shape.grid, shape.block, shape.kernarg)
    workspace = device.allocate(shape.workspace_bytes) if shape.workspace_bytes else 0
    places = [*zip(shape.pointers, addresses, strict=True), (shape.workspace, workspace)]
    for words, address in places:
        for word in words:
            launch.words[word] = address

    def run() -> None:
        device.activate()
        if shape.zeroed_bytes:
            device.clear(workspace, shape.zeroed_bytes, None)
        launch(None)

    try:
        yield run
        device.synchronize()
    finally:
        if workspace:
            device.free(workspace)
