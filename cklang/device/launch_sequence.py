# SPDX-License-Identifier: MIT
"""All launches of a repeated call as one call into C.

A HIP call from Python takes about a microsecond, and a call of three kernels makes six of them.
``launch_sequence.cpp`` makes them from C; it is compiled once a machine, when a call is repeated
for the first time. Where there is no compiler the launches are made one by one, to the same effect.
"""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cklang import forks
from cklang.device.device import Device, Launch, lost, refused
from cklang.device.hip_calls import hip_calls
from cklang.errors import CkBuildError
from cklang.toolchain.built_library import compiled_library
from cklang.toolchain.log import logger
from cklang.toolchain.python_function import python_function, words, words_of_python

_SOURCE = Path(__file__).with_suffix(".cpp")
_FLAGS = ("-O2", "-fno-exceptions", "-fno-rtti", "-Wall", "-Wextra")
_PYTHON = (
    "PyList_GetItem",
    "PyLong_AsUnsignedLongLong",
    "PyLong_FromLong",
    "PyObject_IsTrue",
    "PyErr_Occurred",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
)
"""The functions of ``ck_python``, in its order."""
_FAILED = ("", "hipSetDevice", "hipModuleLaunchKernel", "hipStreamSynchronize")


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A 64-bit word of a launch's arguments that holds an address of the call."""

    launch: int
    """Index of the launch."""
    word: int
    """Index of the word in its arguments."""
    address: int
    """Index among the addresses of the call."""
    offset: int = 0
    """Bytes to add to that address."""


class _Patch(ctypes.Structure):
    _fields_ = (
        ("word", ctypes.c_void_p),
        ("address", ctypes.c_uint64),
        ("offset", ctypes.c_uint64),
    )


class _Launch(ctypes.Structure):
    _fields_ = (
        ("function", ctypes.c_void_p),
        ("shape", ctypes.c_uint32 * 6),
        ("extra", ctypes.c_void_p),
    )


class _Sequence(ctypes.Structure):
    _fields_ = (
        ("set_device", ctypes.c_void_p),
        ("launch", ctypes.c_void_p),
        ("synchronize", ctypes.c_void_p),
        ("promise_to_wait", ctypes.c_void_p),
        ("device", ctypes.c_int32),
        ("patches", ctypes.c_uint32),
        ("launches", ctypes.c_uint32),
        ("patch", ctypes.POINTER(_Patch)),
        ("kernel", ctypes.POINTER(_Launch)),
    )


class LaunchSequence:
    """Launches that are made one after the other; two threads must not use one at a time."""

    __slots__ = ("_device", "_memory", "_pointer", "_run", "launches")

    def __init__(
        self,
        run: Callable[..., int],
        device: Device,
        launches: Sequence[Launch],
        patches: Sequence[Patch],
    ) -> None:
        patch = (_Patch * len(patches))()
        for place, target in zip(patch, patches, strict=True):
            place.word = launches[target.launch].word_address(target.word)
            place.address, place.offset = target.address, target.offset
        kernel = (_Launch * len(launches))()
        for call, launch in zip(kernel, launches, strict=True):
            call.function, call.extra = launch.function_pointer, launch.extra_pointer
            call.shape[:] = launch.shape
        calls = hip_calls()
        sequence = _Sequence(
            set_device=_pointer(calls.set_device),
            launch=_pointer(calls.launch),
            synchronize=_pointer(calls.synchronize),
            promise_to_wait=_pointer(device.promise_to_wait) if device.emulated else None,
            device=device.index,
            patches=len(patches),
            launches=len(launches),
            patch=patch,
            kernel=kernel,
        )
        self._run = run
        self._device = device
        self._pointer = ctypes.addressof(sequence)
        # What the C structs point to.
        self._memory = (sequence, patch, kernel)
        self.launches = tuple(launches)
        """What is launched, in order."""

    def __call__(self, addresses: list[int], stream: int | None, *, waits: bool) -> None:
        """Make the launches on a stream, and wait for them if ``waits``.

        Raises:
            CkDeviceError: D003 or an E row, a launch was refused or a kernel faulted; D010, the
                process was forked from one that used the GPU.
        """
        if forks.gpu_is_lost:
            raise lost(self._device.name)
        failure = self._run(self._pointer, addresses, stream or 0, waits)
        if failure:
            raise refused(self._device, _FAILED[failure >> 16], failure & 0xFFFF)


def launch_sequence(
    device: Device, launches: Sequence[Launch], patches: Sequence[Patch]
) -> LaunchSequence | None:
    """Return the launches as one sequence; None if no compiler can make the C part."""
    run = _run_sequence()
    return None if run is None else LaunchSequence(run, device, launches, patches)


@cache
def _run_sequence() -> Callable[..., int] | None:
    try:
        library = compiled_library(_SOURCE, _FLAGS)
    except CkBuildError as problem:
        logger("device").info("launches are made one by one: %s", problem)
        return None
    loaded = ctypes.CDLL(str(library))
    loaded.ck_learn(words(*words_of_python(*_PYTHON)))
    return python_function(loaded, "ck_run_sequence")


def _pointer(function: Callable[..., object]) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type]
