# SPDX-License-Identifier: MIT
"""What kernels cost on the device itself: built, loaded, run on memory of their own.

On a real GPU the cost is the time of a launch. The emulator's time says nothing about a GPU, so
there the cost is the time by the clock, for which a few workgroups run, or, where the clock has no
constants, the number of wave instructions; the unit says so.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cklang.arch import ArchSpec
from cklang.device.device import Device, open_device
from cklang.emulator.profiler.prediction import predict
from cklang.families import family_of
from cklang.fusion.functions import Functions
from cklang.keys import AnyKey
from cklang.runtime.standalone_launch import standalone_launch
from cklang.selection.context import device_of
from cklang.tune.by_clock import CLOCKED, clock_identity

_WARM = 3
_REPEATS = 20
_ROUNDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What each kernel costs, and what of."""

    values: tuple[float, ...]
    unit: str
    device: str


Measure = Callable[[Sequence[AnyKey], Functions, Any, ArchSpec], Costs]


def measurement(
    keys: Sequence[AnyKey], functions: Functions, problem: Any, spec: ArchSpec
) -> Costs:
    """Build the kernels and measure each on the device that a call would run on."""
    return measured_on(device_of(spec), keys, functions, problem)


def measured_on(
    name: str, keys: Sequence[AnyKey], functions: Functions, problem: Any, caches: str | None = None
) -> Costs:
    """Build the kernels and measure each on a device.

    ``caches`` is what launches find there, as :func:`cklang.predict` takes it, if the clock times
    them.
    """
    from cklang.build.builder import shared_builder

    builder = shared_builder()
    builder.build_all([(key, functions) for key in keys])
    device = open_device(name)
    with ExitStack() as stack:
        memory = _Memory(device, stack)
        values = tuple(_cost(device, memory, key, functions, problem, caches) for key in keys)
    return Costs(values=values, unit=_unit(device), device=str(device))


def _unit(device: Device) -> str:
    if not device.emulated:
        return "µs"
    known = bool(clock_identity(device.spec.name))
    return CLOCKED if known else "wave instructions (no time: the GPU is emulated)"


class _Memory:
    """The operands of a problem on a device; kernels that are measured in turn share them."""

    def __init__(self, device: Device, stack: ExitStack) -> None:
        self._device, self._stack = device, stack
        self._places: dict[tuple[str, int], int] = {}

    def addresses(self, contents: Mapping[str, npt.NDArray[np.uint8]]) -> dict[str, int]:
        """Return where each value is."""
        return {name: self._place(name, content) for name, content in contents.items()}

    def _place(self, name: str, contents: npt.NDArray[np.uint8]) -> int:
        known = self._places.get((name, contents.nbytes))
        if known is None:
            known = self._device.allocate(contents.nbytes)
            self._stack.callback(self._device.free, known)
            self._device.copy_in(known, contents.ctypes.data, contents.nbytes)
            self._places[name, contents.nbytes] = known
        return known


def _cost(
    device: Device,
    memory: _Memory,
    key: AnyKey,
    functions: Functions,
    problem: Any,
    caches: str | None,
) -> float:
    """Return what a kernel takes by itself, with the launches that a choice of it entails."""
    from cklang.build.builder import shared_builder

    operands = family_of(key.signature).operands(problem, key, functions)
    stages = operands.stages
    artifacts = shared_builder().build_all([(stage.key, stage.functions) for stage in stages])
    sizes = {name: content.nbytes for name, content in operands.contents.items()}
    addresses = memory.addresses(operands.contents)
    with standalone_launch(device, stages, artifacts, addresses, sizes) as launch:
        if not device.emulated:
            return microseconds(device, launch)
        if clock_identity(device.spec.name):
            return _clocked(device, launch, caches)
        efforts = (launch(), device.counters())
        return float(sum(effort.instructions for effort in efforts if effort is not None))


def _clocked(device: Device, launch: Callable[[], object], caches: str | None) -> float:
    def call() -> None:
        launch()
        device.synchronize()

    return predict(call, spec=device.spec, caches=caches).us


def microseconds(device: Device, launch: Callable[[], object]) -> float:
    """Return the time of a launch: the least of some means, each of launches right in a row."""
    return min(_mean(device, launch) for _ in range(_ROUNDS))


def _mean(device: Device, launch: Callable[[], object]) -> float:
    for _ in range(_WARM):
        launch()
    device.synchronize()
    start = time.perf_counter()
    for _ in range(_REPEATS):
        launch()
    device.synchronize()
    return (time.perf_counter() - start) / _REPEATS * 1e6
