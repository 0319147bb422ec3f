# SPDX-License-Identifier: MIT
"""One kernel on one case: built, run, checked against the reference, and what it cost.

On a real GPU the cost is the time of a launch. The emulator's time says nothing about a GPU, so
there the cost is the time by the clock, else what the cost model predicts with the registers and
the LDS that the kernel really takes, else the number of wave instructions; the unit says so, and
the emulator's counters come with it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from cklang import knobs
from cklang.device import arrays
from cklang.device.device import Device, open_device
from cklang.device.resources import Resources
from cklang.device.staging import HostRegion, staged
from cklang.errors import CkError, CkUnsupportedError
from cklang.families import FAMILIES, family_of, key_from_json
from cklang.families.launch_operands import LaunchOperands
from cklang.families.tensor_layout import TensorLayout
from cklang.keys import AnyKey
from cklang.runtime.standalone_launch import standalone_launch
from cklang.tune.by_clock import CLOCKED, Clocked, clocked
from cklang.tune.called import called, error_ratio_of, operands_of
from cklang.tune.database import Measurement, Status, now
from cklang.tune.gradient import gradient_error_ratio, prepared
from cklang.tune.on_device import measurement, microseconds
from cklang.tune.task import TuningTask
from cklang.types import DType, Kind

MICROSECONDS = "µs"
PREDICTED = "µs predicted (the GPU is emulated)"
INSTRUCTIONS = "wave instructions (no prediction: the GPU is emulated)"

Price = tuple[float, str, Mapping[str, float]]
"""What a right kernel costs, the unit, and the emulator's counters."""


def measure(task: Mapping[str, Any], key: Mapping[str, Any], settings: Mapping[str, str]) -> Any:
    """Measure a kernel that came as plain data; return a measurement as plain data.

    What cklang itself refuses, the build and faults included, is a failed measurement.

    ``settings`` are the knobs of whoever asks, by environment name.
    """
    with knobs.scope(**settings):
        kernel = key_from_json(dict(key))
        try:
            return _of_family(TuningTask.from_json(task), kernel).to_json()
        except CkError as problem:
            return failed(kernel, Status.FAILED, f"CK-{problem.code} {problem.message}").to_json()


def _of_family(task: TuningTask, key: AnyKey) -> Measurement:
    if task.gradient is not None:
        return _gradient_measured(task, key)
    by_launch = family_of(key.signature).tuning.timed_by_launch
    return (_launch_measured if by_launch else _call_measured)(task, key)


def failed(key: AnyKey, status: Status, note: str) -> Measurement:
    """Return the measurement of a kernel that has no cost."""
    return Measurement(key=key, status=status, cost=None, unit="", note=note, measured_at=now())


def _launch_measured(task: TuningTask, key: AnyKey) -> Measurement:
    """Measure a launch of a kernel by itself, on operands of its own."""
    from cklang.build.builder import shared_builder

    functions = task.functions
    (artifact,) = shared_builder().build_all([(key, functions)])
    device = open_device()
    operands = _launch_operands(task)
    (stage,) = family_of(key.signature).operands(task.problem, key, functions).stages
    # Each input of a launch has memory of its own, also where the program has one value for two.
    names = tuple(map(str, range(len(stage.values))))
    stage = replace(stage, values=names)
    with staged(device, _regions(operands)) as places:
        addresses = {str(at): places[index] for at, index in enumerate(operands.order)}
        with standalone_launch(device, [stage], [artifact], addresses) as launch:
            with clocked(device, sum(array.nbytes for array in operands.memory)) as clock:
                launch()
                device.synchronize()
            counters = _counters(device)
            spent = None if device.emulated else microseconds(device, launch)
    family = family_of(key.signature)
    ratio = family.tuning.error_ratio(operands.kernel, operands.inputs, operands.results)

    def price() -> Price:
        if spent is not None:
            return spent, MICROSECONDS, counters
        built = {key: artifact.resources}
        return _emulated(clock, key, task.problem, counters, built)

    return _judged(key, ratio, price)


def _judged(key: AnyKey, ratio: float, price: Callable[[], Price]) -> Measurement:
    """Return the measurement of a kernel whose largest error is ``ratio`` times its bound.

    What it costs is asked for only if it is right.
    """
    if ratio > 1:
        return failed(key, Status.WRONG, f"the largest error is {ratio:.3g} times its bound")
    cost, unit, counters = price()
    return Measurement(
        key=key,
        status=Status.RIGHT,
        cost=cost,
        unit=unit,
        counters={**counters, "error_ratio": ratio},
        measured_at=now(),
    )


def _call_measured(task: TuningTask, key: AnyKey) -> Measurement:
    """Measure a kernel through calls of its op."""
    arrays = operands_of(task, _inputs(task))
    price = partial(_call_price, open_device(), task, key, arrays)
    return _judged(key, error_ratio_of(task, key, arrays), price)


def _call_price(
    device: Device, task: TuningTask, key: AnyKey, arrays: Sequence[npt.NDArray[Any]]
) -> Price:
    """Return what a kernel costs by itself or, emulated, by the model or in a call."""
    if not device.emulated:
        costs = measurement([key], task.functions, task.problem, device.spec)
        return costs.values[0], MICROSECONDS, {}
    with clocked(device, sum(array.nbytes for array in arrays)) as clock:
        _, instructions = called(task, key, arrays)
    counters = {"instructions": float(instructions or 0)}
    return _emulated(clock, key, task.problem, counters, {})


def _gradient_measured(task: TuningTask, key: AnyKey) -> Measurement:
    device = open_device()
    arrays = operands_of(task, _inputs(task))

    def price() -> Price:
        gradients = prepared(task, key, arrays)
        with gradients.call.ready(gradients.addresses) as launch:
            if not device.emulated:
                return microseconds(device, launch), MICROSECONDS, {}
            with clocked(device, sum(array.nbytes for array in arrays)) as clock:
                before = launch()
                device.synchronize()
            last = device.counters()
        efforts = [count.instructions for count in (before, last) if count is not None]
        counters = {"instructions": float(sum(efforts))}
        return _emulated(clock, key, task.problem, counters, {})

    return _judged(key, gradient_error_ratio(task, key, arrays), price)


def _emulated(
    clock: Clocked,
    key: AnyKey,
    problem: Any,
    counters: Mapping[str, float],
    built: Mapping[AnyKey, Resources],
) -> Price:
    """Return what a kernel takes by the clock, or by the cost model, or in instructions.

    The counters have what the cost model predicts, too.
    """
    try:
        cost = family_of(key.signature).cost([key], clock.device.spec, built)
        counters = {**counters, "predicted_us": float(cost.times(problem)[0])}
    except CkUnsupportedError:
        pass
    us = clock.us()
    if us is not None:
        return us, CLOCKED, counters
    if "predicted_us" in counters:
        return counters["predicted_us"], PREDICTED, counters
    return counters["instructions"], INSTRUCTIONS, counters


def _counters(device: Device) -> dict[str, float]:
    if not device.emulated:
        return {}
    from dataclasses import asdict

    from cklang import emulator

    counted: dict[str, float] = asdict(emulator.stats(device.index))
    return counted


def _launch_operands(task: TuningTask) -> LaunchOperands:
    """Return random inputs and an unwritten result, laid out as the task says."""
    rng = np.random.default_rng(0)
    memory = _operands(task)
    names = list(memory)
    # What is cut, or read from copies that repeat an operand, is not in the program as it is.
    if task.launch is not None or any(x.value not in names for x in task.problem.inputs):
        family = FAMILIES[task.fused.family]
        return family.tuning.launch_operands(*task.launched, partial(_values, rng=rng))
    arrays = tuple(memory.values())
    count = len(task.fused.inputs)
    return LaunchOperands(
        kernel=task.fused,
        memory=arrays,
        order=tuple(names.index(input_.value) for input_ in task.problem.inputs),
        inputs=arrays[:count],
        place=count,
        result=arrays[count],
        more=tuple(enumerate(arrays))[count + 1 :],
    )


def _operands(task: TuningTask) -> dict[str, npt.NDArray[Any]]:
    """Return random inputs and unwritten results by name, laid out as the task says."""
    rng = np.random.default_rng(0)
    return {name: _array(layout, rng) for name, layout in task.places.items()}


def _inputs(task: TuningTask) -> list[npt.NDArray[Any]]:
    """Return random inputs alone."""
    return list(_operands(task).values())[: len(task.fused.inputs)]


def _array(storage: TensorLayout, rng: np.random.Generator) -> npt.NDArray[Any]:
    size = storage.dtype.bytes
    low, high = arrays.extent_of(storage.shape, storage.strides, size)
    flat = _values(storage.dtype, max((high - low) // size, 1), rng)
    strides = [stride * size for stride in storage.strides]
    return np.lib.stride_tricks.as_strided(flat[-low // size :], storage.shape, strides)


def _values(dtype: DType, count: int, rng: np.random.Generator) -> npt.NDArray[Any]:
    if dtype.kind is Kind.FLOAT:
        return rng.uniform(-1.0, 1.0, count).astype(np.float32).astype(dtype.numpy)
    low, high = (0, 2) if dtype.kind is Kind.BOOL else (-8, 8)
    return rng.integers(low, high, count).astype(dtype.numpy)


def _regions(operands: LaunchOperands) -> Sequence[HostRegion]:
    regions = []
    for index, array in enumerate(operands.memory):
        low, high = arrays.extent_of(
            array.shape, tuple(s // array.itemsize for s in array.strides), array.itemsize
        )
        written = index in operands.written
        regions.append(HostRegion(pointer=array.ctypes.data, low=low, high=high, written=written))
    return regions
