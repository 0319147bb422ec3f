# SPDX-License-Identifier: MIT
"""One kernel on one case: built, run, checked against the reference, and what it cost.

On a real GPU the cost is the time of a launch. The emulator's time says nothing about a GPU, so
there the cost is what the model predicts with the registers and the LDS that the kernel really
takes, or the number of wave instructions where the model knows nothing; the unit says so, and the
emulator's counters come with it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from cklang import knobs
from cklang.attention_keys import AnyKey, AttentionGradKey, AttentionKey, key_from_json
from cklang.build.record import Artifact
from cklang.device import arrays
from cklang.device.device import Device, open_device
from cklang.device.staging import Region, placed
from cklang.errors import CkError, CkUnsupportedError, error
from cklang.families.attention.problem import AttentionCase, AttentionGradCase
from cklang.families.attention.ranking import attention_grad_times, attention_times
from cklang.families.conv.problem import AnyProblem
from cklang.families.gemm.cost.model import estimate
from cklang.families.gemm.cost.traits import Resources
from cklang.families.gemm.problem import Storage
from cklang.keys import KernelKey
from cklang.runtime.standalone_launch import bare_launch
from cklang.tune.attention import AttentionRun, called, error_ratio_of, run_operands
from cklang.tune.case import Case
from cklang.tune.check import error_ratio
from cklang.tune.database import Measurement, Status
from cklang.tune.gradient import GradientRun, gradient_error_ratio, prepared
from cklang.tune.on_device import measurement, microseconds
from cklang.types import DType, Kind

__all__ = ["INSTRUCTIONS", "MICROSECONDS", "PREDICTED", "failed", "measure"]

MICROSECONDS = "µs"
PREDICTED = "µs predicted (the GPU is emulated)"
INSTRUCTIONS = "wave instructions (no prediction: the GPU is emulated)"

Price = tuple[float, str, Mapping[str, float]]
"""What a right kernel costs, the unit, and the emulator's counters."""


def measure(case: Mapping[str, Any], key: Mapping[str, Any], settings: Mapping[str, str]) -> Any:
    """Measure a kernel that came as plain data; return a measurement as plain data.

    What cklang itself refuses, the build and faults included, is a failed measurement.

    Args:
        case: A case's JSON form.
        key: The kernel's.
        settings: Knobs by environment name: those of whoever asks.
    """
    with knobs.scope(**settings):
        kernel = key_from_json(dict(key))
        try:
            return _of_family(case, kernel).to_json()
        except CkError as problem:
            return failed(kernel, Status.FAILED, f"CK-{problem.code} {problem.message}").to_json()


def _of_family(case: Mapping[str, Any], key: AnyKey) -> Measurement:
    if isinstance(key, KernelKey):
        return _measured(Case.from_json(case), key)
    if isinstance(key, AttentionKey):
        return _attention_measured(AttentionRun.from_json(case), key)
    if isinstance(key, AttentionGradKey):
        return _gradient_measured(GradientRun.from_json(case), key)
    raise error("Z002", what=f"{key.label} is to be measured by itself")


def failed(key: AnyKey, status: Status, note: str) -> Measurement:
    """Return the measurement of a kernel that has no cost."""
    return Measurement(key=key, status=status, cost=None, unit="", note=note, measured_at=_now())


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")


def _measured(case: Case, key: KernelKey) -> Measurement:
    from cklang.build.builder import shared_builder

    kernel = case.fused
    (artifact,) = shared_builder().build_all([(key, kernel.epilogue)])
    device = open_device()
    operands = _operands(case)
    inputs, result = list(operands.values())[:-1], operands[kernel.result.name]
    problem = case.problem
    with placed(device, _regions(operands, kernel.result.name)) as places:
        by_name = dict(zip(operands, places, strict=True))
        addresses = [by_name[each.value] for each in problem.inputs]
        with bare_launch(device, artifact, problem, addresses) as launch:
            launch()
            device.synchronize()
            counters = _counters(device)
            spent = None if device.emulated else microseconds(device, launch)
    ratio = error_ratio(kernel, inputs, result)

    def price() -> Price:
        if spent is None:
            return *_predicted(device, artifact, problem, counters), counters
        return spent, MICROSECONDS, counters

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
        measured_at=_now(),
    )


def _attention_measured(run: AttentionRun, key: AttentionKey) -> Measurement:
    device = open_device()
    rng = np.random.default_rng(0)
    arrays = run_operands(run, [_array(held, rng) for held in run.storage])

    def price() -> Price:
        if not device.emulated:
            costs = measurement([key], run.filling, run.problem, device.spec)
            return costs.values[0], MICROSECONDS, {}
        _, instructions = called(run, key, arrays)
        return _emulated(device, key, run.problem, instructions or 0)

    return _judged(key, error_ratio_of(run, key, arrays), price)


def _gradient_measured(run: GradientRun, key: AttentionGradKey) -> Measurement:
    device = open_device()
    rng = np.random.default_rng(0)
    arrays = run_operands(run.forward, [_array(held, rng) for held in run.forward.storage])

    def price() -> Price:
        made = prepared(run, key, arrays)
        with made.call.ready(made.addresses) as launch:
            if not device.emulated:
                return microseconds(device, launch), MICROSECONDS, {}
            before = launch()
            device.synchronize()
            last = device.effort()
        efforts = [each.instructions for each in (before, last) if each is not None]
        return _emulated(device, key, run.problem, sum(efforts))

    return _judged(key, gradient_error_ratio(run, key, arrays), price)


def _emulated(
    device: Device,
    key: AttentionKey | AttentionGradKey,
    problem: AttentionCase | AttentionGradCase,
    instructions: int,
) -> Price:
    """Return the price of a call that took so many instructions: what the model predicts of it."""
    counters = {"instructions": float(instructions)}
    try:
        if isinstance(problem, AttentionCase):
            times = attention_times([cast(AttentionKey, key)], problem, device.spec)
        else:
            times = attention_grad_times([cast(AttentionGradKey, key)], problem, device.spec)
    except CkUnsupportedError:
        return counters["instructions"], INSTRUCTIONS, counters
    return float(times[0]), PREDICTED, counters


def _counters(device: Device) -> dict[str, float]:
    if not device.emulated:
        return {}
    from dataclasses import asdict

    from cklang import emulator

    counted: dict[str, float] = asdict(emulator.stats(device.index))
    return counted


def _predicted(
    device: Device, artifact: Artifact, problem: AnyProblem, counters: Mapping[str, float]
) -> tuple[float, str]:
    used = artifact.resources
    held = Resources(vgprs=used.vgprs, lds_bytes=used.lds_bytes)
    try:
        found = estimate(artifact.gemm, problem, spec=device.spec, resources=held)
    except CkUnsupportedError:
        return counters["instructions"], INSTRUCTIONS
    return found.us, PREDICTED


def _operands(case: Case) -> dict[str, npt.NDArray[Any]]:
    """Return random inputs and an unwritten result by name, laid out as the case says."""
    rng = np.random.default_rng(0)
    return {name: _array(storage, rng) for name, storage in case.places.items()}


def _array(storage: Storage, rng: np.random.Generator) -> npt.NDArray[Any]:
    size = storage.dtype.bytes
    _, high = arrays.extent_of(storage.shape, storage.strides, size)
    flat = _values(storage.dtype, max(high // size, 1), rng)
    strides = [stride * size for stride in storage.strides]
    return np.lib.stride_tricks.as_strided(flat, storage.shape, strides)


def _values(dtype: DType, count: int, rng: np.random.Generator) -> npt.NDArray[Any]:
    if dtype.kind is Kind.FLOAT:
        return rng.uniform(-1.0, 1.0, count).astype(np.float32).astype(dtype.numpy)
    low, high = (0, 2) if dtype.kind is Kind.BOOL else (-8, 8)
    return rng.integers(low, high, count).astype(dtype.numpy)


def _regions(operands: Mapping[str, npt.NDArray[Any]], result: str) -> Sequence[Region]:
    regions = []
    for name, array in operands.items():
        low, high = arrays.extent_of(
            array.shape, tuple(s // array.itemsize for s in array.strides), array.itemsize
        )
        place = array.ctypes.data
        regions.append(Region(pointer=place, low=low, high=high, written=name == result))
    return regions
