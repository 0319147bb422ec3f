# SPDX-License-Identifier: MIT
"""What kernels cost on the device itself: built, loaded, run on memory of their own.

On a real GPU the cost is the time of a launch. The emulator's time says nothing about a GPU, so
there the cost is the number of wave instructions that it executed, and the unit says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from cklang.arch import ArchSpec
from cklang.attention_keys import ReduceKey
from cklang.build.record import Artifact
from cklang.device.device import Device, Effort, open_device
from cklang.families.attention.problem import AttentionCase, AttentionGradCase
from cklang.families.attention.standalone import bare_attention, bare_gradient, contents_of
from cklang.families.conv.problem import AnyProblem
from cklang.families.family import NOTHING, Asked, ChosenKey, Filling
from cklang.runtime.standalone_launch import bare_launch

__all__ = ["Costs", "Measure", "measurement", "microseconds"]

_WARM = 3
_REPEATS = 20
_ROUNDS = 3
_FILLING = 0x3C
"""Bytes of operands: a small number in every floating format, so that nothing is infinite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What each kernel costs, and what of."""

    values: tuple[float, ...]
    unit: str
    device: str


_Launch = AbstractContextManager[Callable[[], Effort | None]]
"""Gives what launches, and returns what all launches but the last took on the emulator."""
_Launches = Callable[[Artifact], _Launch]

Measure = Callable[[Sequence[ChosenKey], Filling, Asked, ArchSpec], Costs]


def measurement(
    keys: Sequence[ChosenKey], filling: Filling, problem: Asked, spec: ArchSpec
) -> Costs:
    """Build the kernels and measure each on the device that a call would run on.

    Raises:
        CkBuildError: B rows, a kernel cannot be built; CkDeviceError: D and E rows.
    """
    from cklang.build.builder import shared_builder
    from cklang.selection.context import device_of

    artifacts = shared_builder().build_all([(key, filling) for key in keys])
    device = open_device(device_of(spec))
    with ExitStack() as stack:
        launches = _launches(device, problem, stack)
        values = tuple(_cost(device, launches(artifact)) for artifact in artifacts)
    unit = "wave instructions (no time: the GPU is emulated)" if device.emulated else "µs"
    return Costs(values=values, unit=unit, device=str(device))


def _launches(device: Device, problem: Asked, stack: ExitStack) -> _Launches:
    """Return what makes a launch of a kernel on memory that ``stack`` frees."""
    if isinstance(problem, AttentionGradCase | AttentionCase):
        forward = problem if isinstance(problem, AttentionCase) else problem.forward
        contents = contents_of(forward)
        addresses = {name: _placed(device, held, stack) for name, held in contents.items()}
        if isinstance(problem, AttentionCase):
            return partial(_attention_launch, device, problem, addresses)
        return partial(_gradient_launch, device, problem, addresses)
    places = [_placed(device, np.full(n, _FILLING, np.uint8), stack) for n in _sizes(problem)]
    return partial(_product_launch, device, problem, places)


def _attention_launch(
    device: Device, problem: AttentionCase, addresses: Mapping[str, int], artifact: Artifact
) -> _Launch:
    return bare_attention(device, artifact, problem, addresses)


def _gradient_launch(
    device: Device, problem: AttentionGradCase, addresses: Mapping[str, int], artifact: Artifact
) -> _Launch:
    from cklang.build.builder import shared_builder

    key = ReduceKey(False, problem.forward.signature.dtype, artifact.key.arch)
    (summing,) = shared_builder().build_all([(key, NOTHING)])
    return bare_gradient(device, artifact, summing, problem, addresses)


def _product_launch(
    device: Device, problem: AnyProblem, places: Sequence[int], artifact: Artifact
) -> _Launch:
    return bare_launch(device, artifact, problem, places)


def _sizes(problem: AnyProblem) -> list[int]:
    """Bytes of all that a kernel reads or writes."""
    return [max(1, each.span * each.dtype.bits // 8) for each in problem.inputs]


def _placed(device: Device, contents: npt.NDArray[np.uint8], stack: ExitStack) -> int:
    pointer = device.allocate(contents.nbytes)
    stack.callback(device.free, pointer)
    device.copy_in(pointer, contents.ctypes.data, contents.nbytes)
    return pointer


def _cost(device: Device, launched: _Launch) -> float:
    with launched as launch:
        if not device.emulated:
            return microseconds(device, launch)
        before = launch()
        device.synchronize()
        efforts = (before, device.effort())
        return float(sum(each.instructions for each in efforts if each is not None))


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
