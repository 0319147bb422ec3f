# SPDX-License-Identifier: MIT
"""GPUs through hip-python: real ones if there are any, else the emulated ones; one code path.

hip-python talks to one ``libamdhip64.so`` a process. Which one is decided at the first use: a real
GPU is preferred, and the emulator's library is loaded otherwise, or when a device named ``emu:…``
is asked for.
"""

from __future__ import annotations

import ctypes
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cklang import forks, knobs, places
from cklang.arch import ArchSpec, all_archs, arch
from cklang.device.arrays import HOST, index_of
from cklang.device.hip_calls import hip_calls
from cklang.device.scratch import Scratch
from cklang.errors import CkError, error
from cklang.toolchain.log import logger, say_once

_EMULATED = "emu"
_REAL = "hip"
_KERNEL_DRIVER = Path("/dev/kfd")

# From hip_runtime_api.h: the argument buffer of a launch, its size, and the end of that list.
_BUFFER_POINTER, _BUFFER_SIZE, _BUFFER_END = 1, 2, 3
_PROPERTIES_BYTES, _TARGET_AT = 4096, 1160
"""Room for a ``hipDeviceProp_t``, and where its ``gcnArchName`` is."""
_HOST_TO_DEVICE, _DEVICE_TO_HOST = "hipMemcpyHostToDevice", "hipMemcpyDeviceToHost"

PAST_LAUNCHES = 8
"""How many launches' times an emulated device remembers."""

_mode: str | None = None
_mode_lock = forks.lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A kernel loaded on a device."""

    device: Device
    handle: Any
    module: Any
    """Keeps the code object loaded."""
    symbol: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchCounters:
    """What emulating one or more launches took."""

    instructions: int
    """Wave instructions executed."""
    engine_ns: int
    """Time that the engine spent on them, in nanoseconds."""

    def __add__(self, other: LaunchCounters) -> LaunchCounters:
        return LaunchCounters(
            instructions=self.instructions + other.instructions,
            engine_ns=self.engine_ns + other.engine_ns,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One HIP device."""

    name: str
    """``hip:0`` or ``emu:gfx942``."""
    index: int
    spec: ArchSpec
    emulated: bool
    host_memory: bool
    """Whether kernels use host memory in place; else arrays are copied to the device and back."""
    calls: list[int] = field(default_factory=lambda: [0], compare=False, repr=False)
    """How many calls have run here, as its only element."""
    scratch: Scratch = field(default_factory=Scratch, compare=False, repr=False)

    def __str__(self) -> str:
        return _words(self.name, self.spec, self.emulated)

    def load(self, code: bytes, symbol: str) -> Function:
        """Load a code object and find kernel ``symbol`` in it.

        Raises:
            CkDeviceError: D003, the device refuses the code object; E rows from the emulator.
        """
        self.activate()
        calls, module, handle = hip_calls(), ctypes.c_void_p(), ctypes.c_void_p()
        status = calls.load_module(ctypes.byref(module), code)
        if status:
            raise refused(self, "hipModuleLoadData", status)
        status = calls.find_function(ctypes.byref(handle), module, symbol.encode())
        if status:
            raise refused(self, "hipModuleGetFunction", status)
        return Function(device=self, handle=handle.value, module=module.value, symbol=symbol)

    def activate(self) -> None:
        """Make it the device of this thread."""
        if forks.gpu_is_lost:
            raise lost(self.name)
        status = hip_calls().set_device(self.index)
        if status:
            raise refused(self, "hipSetDevice", status)

    def launch(
        self,
        function: Function,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        kernarg: bytes,
    ) -> Launch:
        """Prepare a launch whose arguments are ``kernarg`` until they are changed."""
        return Launch(function, (*grid, *block), kernarg)

    def synchronize(self, stream: int | None = None) -> None:
        """Wait until everything launched on ``stream`` is done.

        Raises:
            CkDeviceError: D003 or an E row, a kernel faulted.
        """
        pointer = None if stream is None else ctypes.c_void_p(stream)
        status = hip_calls().synchronize(pointer)
        if status:
            raise refused(self, "hipStreamSynchronize", status)

    def wait(self) -> None:
        """Wait until all streams of the device are done."""
        check(self, "hipDeviceSynchronize", hip_library().hipDeviceSynchronize())

    def counters(self, launches: int = 1) -> LaunchCounters | None:
        """Return what the last launches took on the emulated device; None on a real one."""
        if not self.emulated:
            return None
        from cklang import emulator

        stats = emulator.stats(self.index, launches)
        return LaunchCounters(instructions=stats.instructions, engine_ns=stats.nanoseconds)

    @property
    def promise_to_wait(self) -> Callable[[int], None]:
        """How a thread says that it waits for what it launches, as an emulated device can use.

        Called with 1 before the launches, and with 0 if there is no wait after all.
        """
        if not self.emulated:
            return _ignore
        from cklang.emulator.engine import library

        return library.promise_to_wait()

    @property
    def workgroups(self) -> Callable[[], tuple[int, int]] | None:
        """What counts ended and all workgroups of running launches; None on a real GPU."""
        if not self.emulated:
            return None
        from cklang import emulator

        return emulator.workgroups

    @property
    def free_bytes(self) -> int:
        """How many bytes of device memory are free."""
        self.activate()
        answer = hip_library().hipMemGetInfo()
        check(self, "hipMemGetInfo", answer)
        return int(answer[1])

    def allocate(self, size: int) -> int:
        """Return the address of ``size`` new bytes of device memory."""
        pointer = check(self, "hipMalloc", hip_library().hipMalloc(max(size, 1)))
        return int(pointer)

    def allocate_in_order(self, size: int, stream: int | None) -> int:
        """Return the address of ``size`` bytes for what is launched on ``stream`` from now on."""
        pointer = check(self, "hipMallocAsync", hip_library().hipMallocAsync(max(size, 1), stream))
        return int(pointer)

    def free_in_order(self, pointer: int, stream: int | None) -> None:
        """Give memory of :meth:`allocate_in_order` back after what ``stream`` has by now."""
        check(self, "hipFreeAsync", hip_library().hipFreeAsync(pointer, stream))

    def borrow(self, size: int) -> int:
        """Return the address of ``size`` bytes for a call that waits for its kernels."""
        address = self.scratch.acquire(size)
        if address is None:
            self.activate()
            address = self.allocate(size)
        return address

    def release(self, size: int, address: int) -> None:
        """Give memory of :meth:`borrow` back, which no kernel uses any more."""
        if not self.scratch.keep(size, address):
            self.free(address)

    def allocate_pinned(self, size: int) -> int:
        """Return the address of ``size`` bytes of host memory that streams copy from."""
        pointer = check(self, "hipHostMalloc", hip_library().hipHostMalloc(max(size, 1), 0))
        return int(pointer)

    def free_pinned(self, pointer: int) -> None:
        """Give memory of :meth:`allocate_pinned` back; waits for the device."""
        check(self, "hipHostFree", hip_library().hipHostFree(pointer))

    def event(self) -> Any:
        """Return a mark that can be put into streams; it counts as passed until it is."""
        hip = hip_library()
        flags = hip.hipEventDisableTiming
        return check(self, "hipEventCreateWithFlags", hip.hipEventCreateWithFlags(flags))

    def timer(self) -> Any:
        """Return an event that knows when the device passed it."""
        return check(self, "hipEventCreate", hip_library().hipEventCreate())

    def elapsed(self, begin: Any, end: Any) -> float:
        """Return the milliseconds between two events of :meth:`timer`; wait for the second."""
        hip = hip_library()
        check(self, "hipEventSynchronize", hip.hipEventSynchronize(end))
        return float(check(self, "hipEventElapsedTime", hip.hipEventElapsedTime(begin, end)))

    def record(self, event: Any, stream: int | None) -> None:
        """Put ``event`` into ``stream``."""
        check(self, "hipEventRecord", hip_library().hipEventRecord(event, stream))

    def passed(self, event: Any) -> bool:
        """Whether the stream that ``event`` was put into last has come past it."""
        hip = hip_library()
        answer = hip.hipEventQuery(event)
        if answer[0] == hip.hipError_t.hipErrorNotReady:
            return False
        check(self, "hipEventQuery", answer)
        return True

    def clear(self, pointer: int, size: int, stream: int | None) -> None:
        """Set ``size`` bytes to 0, after what was launched on ``stream`` before."""
        check(self, "hipMemsetAsync", hip_library().hipMemsetAsync(pointer, 0, size, stream))

    def free(self, pointer: int) -> None:
        """Give memory of :meth:`allocate` back."""
        check(self, "hipFree", hip_library().hipFree(pointer))

    def copy_in(self, device: int, host: int, size: int) -> None:
        """Copy ``size`` bytes from host memory to the device."""
        self._copy(device, host, size, _HOST_TO_DEVICE)

    def copy_in_order(self, device: int, pinned: int, size: int, stream: int | None) -> None:
        """Copy ``size`` bytes of pinned memory to the device when ``stream`` comes to it."""
        hip = hip_library()
        kind = getattr(hip.hipMemcpyKind, _HOST_TO_DEVICE)
        check(self, "hipMemcpyAsync", hip.hipMemcpyAsync(device, pinned, size, kind, stream))

    def copy_out(self, host: int, device: int, size: int) -> None:
        """Copy ``size`` bytes from the device to host memory."""
        self._copy(host, device, size, _DEVICE_TO_HOST)

    def _copy(self, to: int, source: int, size: int, kind: str) -> None:
        hip = hip_library()
        kinds = hip.hipMemcpyKind
        check(self, "hipMemcpy", hip.hipMemcpy(to, source, size, getattr(kinds, kind)))


class Launch:
    """A launch that can be repeated; ``words`` are its arguments as 64-bit words.

    HIP copies the arguments before a launch returns, so they may be changed right after. Two
    threads must not use one launch at the same time.
    """

    __slots__ = (
        "_arguments",
        "_call",
        "_extra",
        "_function",
        "_kernarg",
        "_shape",
        "_size",
        "words",
    )

    def __init__(
        self, function: Function, shape: tuple[int, ...], kernarg: bytes, lds_bytes: int = 0
    ) -> None:
        self._kernarg = ctypes.create_string_buffer(kernarg, -(-len(kernarg) // 8) * 8)
        self.words = (ctypes.c_uint64 * (len(self._kernarg) // 8)).from_buffer(self._kernarg)
        self._size = ctypes.c_size_t(len(kernarg))
        self._extra = (ctypes.c_void_p * 5)(
            _BUFFER_POINTER,
            ctypes.addressof(self._kernarg),
            _BUFFER_SIZE,
            ctypes.addressof(self._size),
            _BUFFER_END,
        )
        self._function = function
        self._shape = shape
        self._arguments = (ctypes.c_void_p(int(function.handle)), *shape, lds_bytes)
        self._call = hip_calls().launch

    @property
    def function_pointer(self) -> int:
        """The kernel's ``hipFunction_t``."""
        return int(self._function.handle)

    @property
    def shape(self) -> tuple[int, ...]:
        """Workgroups, then threads of a workgroup, along x, y and z."""
        return self._shape

    @property
    def extra_pointer(self) -> int:
        """The address of what ``hipModuleLaunchKernel`` takes as ``extra``."""
        return ctypes.addressof(self._extra)

    def word_address(self, index: int) -> int:
        """Return the address of a 64-bit word of the arguments."""
        return ctypes.addressof(self.words) + 8 * index

    def __call__(self, stream: int | None) -> None:
        """Launch on a stream (None: the default one) of the thread's current device.

        Raises:
            CkDeviceError: D003, the launch was refused.
        """
        pointer = None if stream is None else ctypes.c_void_p(stream)
        status = self._call(*self._arguments, pointer, None, self._extra)
        if status:
            raise refused(self._function.device, "hipModuleLaunchKernel", status)


def check(device: Device | None, call: str, answer: tuple[Any, ...]) -> Any:
    """Return what a HIP call gave.

    Raises:
        CkDeviceError: D003, the call failed; the emulator's own error where it has one.
    """
    status, *values = answer
    hip = hip_library()
    if status != hip.hipError_t.hipSuccess:
        raise _failure(device, call, status)
    return values[0] if values else None


def _ignore(_promised: int) -> None:
    """Hear a promise to wait: a real GPU starts what it is given anyway."""


def refused(device: Device | None, call: str, status: int) -> CkError:
    """Return the error for a HIP call whose status is not 0."""
    return _failure(device, call, hip_library().hipError_t(status))


def _failure(device: Device | None, call: str, status: Any) -> CkError:
    hip = hip_library()
    answer = hip.hipGetErrorString(status)
    # The string alone, or behind a status of its own: hip-python's releases differ.
    text = answer[-1] if isinstance(answer, tuple) else answer
    words = text.decode() if isinstance(text, bytes) else str(text)
    detail = ""
    if _mode == _EMULATED:
        from cklang import emulator

        fault = emulator.fault(device.index) if device is not None else ""
        detail = places.translate(fault or emulator.last_error())
    return error(
        "D003",
        call=call,
        device=device.name if device is not None else "the HIP library",
        status=status.name,
        words=words,
        notes=[detail] if detail else [],
    )


@cache
def hip_library() -> Any:
    """Return hip-python's module of HIP; which library it uses must have been chosen."""
    return import_module(_bindings())


def _bindings() -> str:
    """Return the name of hip-python's module of HIP.

    From release 10 on it is in ``rocm.bindings``. The package ``hip``, where it was before, loads
    other bindings too: a quarter of what a process needs to its first launch.
    """
    package = find_spec("hip")
    place = Path(package.origin).parents[1] if package is not None and package.origin else None
    beside = place is not None and (place / "rocm" / "bindings").is_dir()
    return "rocm.bindings.hip" if beside else "hip.hip"


def _choose(wanted: str | None) -> str:
    """Decide, once a process, between the real library and the emulator."""
    global _mode
    with _mode_lock:
        if _mode is None:
            if wanted == _EMULATED or (wanted is None and not _real_gpus()):
                from cklang import emulator

                emulator.quiet()  # errors of this package say what a fault was
                _mode = _EMULATED
            elif wanted == _REAL and not _real_gpus():
                raise error("D004")
            else:
                _mode = _REAL
        if wanted is not None and wanted != _mode:
            raise error("D005", wanted=wanted, loaded=_mode)
        return _mode


def _after_fork() -> None:
    """In the child: an emulated GPU works on (its library copes), a real one does not."""
    forks.gpu_is_lost = forks.gpu_is_lost or _mode == _REAL


os.register_at_fork(after_in_child=_after_fork)


def lost(name: str | None) -> CkError:
    """Return the error for the use of a real GPU that the process had before it was forked."""
    return error("D010", device=name or "the GPU")


@cache
def _real_gpus() -> int:
    if not _KERNEL_DRIVER.exists():
        return 0
    try:
        hip = hip_library()
        status, count = hip.hipGetDeviceCount()
    except (ImportError, OSError, RuntimeError) as problem:
        logger("device").info("there is a GPU driver but no HIP library: %s", problem)
        return 0
    return int(count) if status == hip.hipError_t.hipSuccess else 0


@cache
def _devices(mode: str) -> tuple[Device, ...]:
    count = ctypes.c_int()
    status = hip_calls().count_devices(ctypes.byref(count))
    if status:
        raise refused(None, "hipGetDeviceCount", status)
    return tuple(_device(mode, index) for index in range(count.value))


def _device(mode: str, index: int) -> Device:
    emulated = mode == _EMULATED
    spec = arch(_emulated_target(index) if emulated else _real_target(index))
    return Device(
        name=f"{_EMULATED}:{spec.name}" if emulated else f"{_REAL}:{index}",
        index=index,
        spec=spec,
        emulated=emulated,
        host_memory=emulated,
    )


def _real_target(index: int) -> str:
    properties = check(None, "hipGetDeviceProperties", hip_library().hipGetDeviceProperties(index))
    name = properties.gcnArchName
    return name.decode() if isinstance(name, bytes) else str(name)


def _emulated_target(index: int) -> str:
    """Return the target of a device of the emulator, whose structures are known here."""
    properties = ctypes.create_string_buffer(_PROPERTIES_BYTES)
    status = hip_calls().properties(properties, index)
    if status:
        raise refused(None, "hipGetDeviceProperties", status)
    return ctypes.string_at(ctypes.addressof(properties) + _TARGET_AT).decode()


def devices() -> tuple[Device, ...]:
    """Return the devices of this process."""
    return _devices(_choose(None) if _mode is None else _mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a call would run on, known without loading a HIP library where that can be."""

    name: str
    spec: ArchSpec
    emulated: bool

    def __str__(self) -> str:
        return _words(self.name, self.spec, self.emulated)


def target_of(name: str | None = None) -> Target:
    """Return what :func:`open_device` would open; only a real GPU is asked what it is."""
    device_name = name if name is not None else knobs.DEVICE.get()
    kind, which = _split(device_name)
    if kind == _REAL or (kind is None and _mode != _EMULATED and _real_gpus()):
        device = _find(device_name)
        return Target(name=device.name, spec=device.spec, emulated=device.emulated)
    specs = all_archs()
    match = specs[:1] if device_name is None else [spec for spec in specs if spec.name == which]
    if not match:
        raise error("D001", got=device_name, known=", ".join(f"emu:{spec.name}" for spec in specs))
    return Target(name=f"{_EMULATED}:{match[0].name}", spec=match[0], emulated=True)


def open_device(name: str | None = None, place: str = HOST) -> Device:
    """Return the device called ``name``, or ``CKLANG_DEVICE``, or the first there is.

    Args:
        name: ``emu:gfx942`` or ``hip:0``.
        place: Where the arrays of the call are; arrays on a GPU run on that GPU.

    Raises:
        CkValueError: D001, there is no such device; D006, the arrays are on another GPU.
        CkDeviceError: D004, a real GPU is asked for and there is none; D005, this process has
            loaded the other HIP library; D010, its parent used a real GPU before it forked.
    """
    device_name = name if name is not None else knobs.DEVICE.get()
    if forks.gpu_is_lost:
        raise lost(device_name)
    device = _find(device_name) if device_name is not None or place == HOST else _holder(place)
    if place != HOST and _holder(place) is not device:
        raise error("D006", place=_holder(place).name, device=device.name)
    if device.emulated:
        # Whoever did not ask for an emulated device should hear of it without asking.
        level = logging.WARNING if device_name is None else logging.INFO
        why = "no AMD GPU was found: " if device_name is None else ""
        say_once("device", level, f"{why}kernels run on an emulated {device.spec.name}")
    return device


def _holder(place: str) -> Device:
    return devices()[index_of(place)]


def _split(device_name: str | None) -> tuple[str | None, str]:
    if device_name is None:
        return None, ""
    kind, _, which = device_name.partition(":")
    if kind not in (_EMULATED, _REAL) or not which:
        raise error("D001", got=device_name, known=_legal_for(kind, which))
    return kind, which


def _legal_for(kind: str, which: str) -> str:
    """Return what a name of another library or half a name may stand for, and what is legal."""
    legal = "emu:<gfx name> or hip:<number>"
    if kind in ("cuda", "gpu", "rocm", "hip"):
        return f'{legal}; "{_REAL}:{which or 0}" is the GPU'
    if kind in {spec.name for spec in all_archs()}:
        return f'{legal}; "{_EMULATED}:{kind}" is the emulated one'
    if kind == "cpu":
        return f'{legal}; "{_EMULATED}:gfx942" needs no GPU'
    return legal


@cache
def _find(device_name: str | None) -> Device:
    devices = _devices(_choose(_split(device_name)[0]))
    match = (
        devices[:1]
        if device_name is None
        else [device for device in devices if device.name == device_name]
    )
    if not match:
        raise error("D001", got=device_name, known=", ".join(device.name for device in devices))
    return match[0]


def _words(name: str, spec: ArchSpec, emulated: bool) -> str:
    return f"emulated {spec.name}" if emulated else f"{spec.product} ({name})"
