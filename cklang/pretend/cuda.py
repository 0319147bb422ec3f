# SPDX-License-Identifier: MIT
"""``torch.cuda`` of the pretended GPU: streams, events, properties, and refusals of the rest."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import torch

from cklang import emulator
from cklang.device.device import Device
from cklang.errors import error
from cklang.pretend.tensor import GPU, is_gpu

_DEFAULT_STREAM = 0
_MILLI = 1000.0


class Stream:
    """A stream: what is put into it has ended when the call returns."""

    device = GPU
    device_index = GPU.index
    device_type = 1
    cuda_stream = _DEFAULT_STREAM
    stream_id = _DEFAULT_STREAM

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        self.priority = priority

    def query(self) -> bool:
        """Return True: everything has ended."""
        return True

    def is_capturing(self) -> bool:
        """Return False: no graph is recorded."""
        return False

    def synchronize(self) -> None:
        """Wait for nothing."""

    def wait_event(self, event: Event) -> None:
        """Wait for nothing."""

    def wait_stream(self, stream: Stream) -> None:
        """Wait for nothing."""

    def record_event(self, event: Event | None = None) -> Event:
        """Return an event that has come."""
        event = event or Event()
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream)

    def __hash__(self) -> int:
        return hash(Stream)


class Event:
    """An event: times between two are those of this machine, which emulates the GPU."""

    def __init__(self, enable_timing: bool = False, *_: object, **__: object) -> None:
        self.enable_timing = enable_timing
        self._at: float | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Take the time."""
        self._at = time.perf_counter()

    def wait(self, stream: Stream | None = None) -> None:
        """Wait for nothing."""

    def query(self) -> bool:
        """Return True: everything has ended."""
        return True

    def synchronize(self) -> None:
        """Wait for nothing."""

    def elapsed_time(self, end: Event) -> float:
        """Return the milliseconds that this machine took, which say nothing of a GPU's."""
        if self._at is None or end._at is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end._at - self._at) * _MILLI


class _Entered:
    """A block on the one GPU, or on its one stream."""

    def __init__(self, *_: object) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


class Generator(torch._C.Generator):
    """A generator of random numbers, which may be asked for on the GPU."""

    def __new__(cls, device: Any = "cpu") -> Any:
        """Make one of the CPU, whose numbers are used."""
        new: Any = torch._C.Generator.__new__
        return new(cls, "cpu" if is_gpu(device) else device)

    def __init__(self, device: Any = "cpu") -> None:
        self._is_on_gpu = is_gpu(device)

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """Return where it was asked for."""
        return GPU if self._is_on_gpu else torch.device("cpu")


def properties(device: Device, hip: str) -> SimpleNamespace:
    """Return what torch says of a GPU."""
    major, minor, spec = ctypes.c_int(), ctypes.c_int(), device.spec
    emulator.load().hipDeviceComputeCapability(
        ctypes.byref(major), ctypes.byref(minor), device.index
    )
    lanes = spec.wave_size * spec.max_waves_per_simd * spec.simds_per_cu
    return SimpleNamespace(
        name=f"{spec.product} (emulated)",
        major=major.value,
        minor=minor.value,
        gcnArchName=spec.name,
        total_memory=spec.memory_bytes,
        multi_processor_count=spec.compute_units // spec.compute_units_per_multiprocessor,
        warp_size=spec.wave_size,
        is_integrated=0,
        is_multi_gpu_board=0,
        max_threads_per_multi_processor=lanes,
        max_threads_per_block=spec.max_threads_per_block,
        regs_per_multiprocessor=spec.vgprs_per_simd_lane * spec.wave_size * spec.simds_per_cu,
        shared_memory_per_block=spec.lds_bytes,
        shared_memory_per_block_optin=spec.lds_bytes,
        shared_memory_per_multiprocessor=spec.lds_bytes,
        L2_cache_size=spec.last_level_cache_bytes,
        clock_rate=int(spec.clock_hz / _MILLI),
        memory_clock_rate=int(spec.memory_clock_hz / _MILLI),
        memory_bus_width=spec.memory_bus_bits,
        hip_version=hip,
    )


def functions(device: Device, hip: str) -> Mapping[str, Any]:
    """Return the functions and classes of ``torch.cuda`` that are pretended, by name."""
    facts = properties(device, hip)
    stream = Stream()

    def nothing(*_: object, **__: object) -> None:
        """Do nothing."""

    def same(value: Any) -> Callable[..., Any]:
        return lambda *_, **__: value

    def set_device(number: Any) -> None:
        is_gpu(number)

    return {
        "is_available": same(True),
        "is_initialized": same(True),
        "is_bf16_supported": same(True),
        "is_tf32_supported": same(False),
        "is_current_stream_capturing": same(False),
        "init": nothing,
        "_lazy_init": nothing,
        "_lazy_call": lambda call, **_: call(),
        "device_count": same(1),
        "_device_count_amdsmi": same(1),
        "current_device": same(GPU.index),
        "set_device": set_device,
        "device": _Entered,
        "device_of": _Entered,
        "_DeviceGuard": _Entered,
        "get_device_name": same(facts.name),
        "get_device_properties": same(facts),
        "get_device_capability": same((facts.major, facts.minor)),
        "get_arch_list": same([device.spec.name]),
        "synchronize": nothing,
        "Stream": Stream,
        "Event": Event,
        "stream": _Entered,
        "StreamContext": _Entered,
        "current_stream": same(stream),
        "default_stream": same(stream),
        "set_stream": nothing,
        "empty_cache": nothing,
        "ipc_collect": nothing,
        "manual_seed": torch.default_generator.manual_seed,
        "manual_seed_all": torch.default_generator.manual_seed,
        "seed": torch.default_generator.seed,
        "seed_all": torch.default_generator.seed,
        "initial_seed": torch.default_generator.initial_seed,
        "get_rng_state": lambda *_: torch.get_rng_state(),
        "get_rng_state_all": lambda: [torch.get_rng_state()],
        "set_rng_state": lambda state, *_: torch.set_rng_state(state),
        "set_rng_state_all": lambda states: torch.set_rng_state(states[0]),
        "default_generators": (torch.default_generator,),
    }


_OWN = (
    *("amp", "check_error", "cudaStatus", "CudaError", "DeferredCudaCallError", "memory", "nccl"),
    *("nvtx", "profiler", "random", "sparse", "streams", "graphs", "tunable", "jiterator"),
    *("has_half", "has_magma", "cudart"),
)
"""What torch's build for the CPU has too: modules, errors, flags."""


def refusals() -> Mapping[str, Any]:
    """Return what raises an error that says so, for all that ``torch.cuda`` has beside."""
    names = [
        n for n in torch.cuda.__all__ if n not in _OWN and not n.endswith(("Tensor", "Storage"))
    ]
    return {name: _refused(name, vars(torch.cuda)[name]) for name in names}


def _refused(name: str, original: object) -> Any:
    """Return a function, or a class, that cannot be pretended, and says so when it is called."""

    def refuse(*_: object, **__: object) -> Any:
        raise error("E010", what=f"torch.cuda.{name}")

    return type(name, (), {"__new__": refuse}) if isinstance(original, type) else refuse


def accelerator() -> Mapping[str, Any]:
    """Return what ``torch.accelerator`` says."""
    return {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_accelerator": lambda check_available=False: torch.device(GPU.type),
        "current_device_index": lambda: GPU.index,
        "current_device_idx": lambda: GPU.index,
        "synchronize": lambda *_: None,
        "current_stream": lambda *_: Stream(),
        "empty_cache": lambda: None,
        "set_device_index": lambda device: is_gpu(device) and None,
    }
