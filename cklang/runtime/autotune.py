# SPDX-License-Identifier: MIT
"""What kernels cost on the device itself: built, loaded, run on memory of their own.

On a real GPU the cost is the time of a launch. The emulator's time says nothing about a GPU, so
there the cost is the number of wave instructions that it executed, and the unit says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from cklang.arch import ArchSpec
from cklang.ir.nodes import Function
from cklang.keys import KernelKey
from cklang.runtime.bare import bare_launch
from cklang.runtime.convolution import AnyProblem
from cklang.runtime.device import Device, open_device
from cklang.runtime.record import Artifact

__all__ = ["Costs", "Measure", "measurement", "microseconds"]

_WARM = 3
_REPEATS = 20
_ROUNDS = 3
_FILLING = b"\x3c"
"""Bytes of operands: a small number in every floating format, so that nothing is infinite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What each kernel costs, and what of."""

    values: tuple[float, ...]
    unit: str
    device: str


Measure = Callable[[Sequence[KernelKey], Function, AnyProblem, ArchSpec], Costs]


def measurement(
    keys: Sequence[KernelKey], epilogue: Function, problem: AnyProblem, spec: ArchSpec
) -> Costs:
    """Build the kernels and measure each on the device that a call would run on.

    Raises:
        CkBuildError: B rows, a kernel cannot be built; CkDeviceError: D and E rows.
    """
    from cklang.runtime.build import shared_builder
    from cklang.runtime.context import device_of

    artifacts = shared_builder().build_all([(key, epilogue) for key in keys])
    device = open_device(device_of(spec))
    with ExitStack() as stack:
        memory = [_filled(device, size, stack) for size in _sizes(problem)]
        values = tuple(_cost(device, artifact, problem, memory) for artifact in artifacts)
    unit = "wave instructions (no time: the GPU is emulated)" if device.emulated else "µs"
    return Costs(values=values, unit=unit, device=str(device))


def _sizes(problem: AnyProblem) -> list[int]:
    """Bytes of all that a kernel reads or writes."""
    return [max(1, each.span * each.dtype.bits // 8) for each in problem.inputs]


def _filled(device: Device, size: int, stack: ExitStack) -> int:
    import ctypes

    pointer = device.allocate(size)
    stack.callback(device.free, pointer)
    filling = ctypes.create_string_buffer(_FILLING * size, size)
    device.copy_in(pointer, ctypes.addressof(filling), size)
    return pointer


def _cost(device: Device, artifact: Artifact, problem: AnyProblem, memory: Sequence[int]) -> float:
    with bare_launch(device, artifact, problem, memory) as launch:
        if not device.emulated:
            return microseconds(device, launch)
        launch()
        device.synchronize()
        effort = device.effort()
        return float(effort.instructions) if effort is not None else 0.0


def microseconds(device: Device, launch: Callable[[], None]) -> float:
    """Return the time of a launch: the least of some means, each of launches right in a row."""
    return min(_mean(device, launch) for _ in range(_ROUNDS))


def _mean(device: Device, launch: Callable[[], None]) -> float:
    for _ in range(_WARM):
        launch()
    device.synchronize()
    start = time.perf_counter()
    for _ in range(_REPEATS):
        launch()
    device.synchronize()
    return (time.perf_counter() - start) / _REPEATS * 1e6
