# SPDX-License-Identifier: MIT
"""Launches recorded as one HIP graph, which a stream then repeats in a single call."""

import ctypes
import weakref
from collections.abc import Callable
from typing import Any

from cklang.device.device import Device, check, hip_library, refused
from cklang.device.hip_calls import hip_calls
from cklang.errors import CkError


class Graph:
    """What was put into a stream while it was recorded."""

    def __init__(self, device: Device, record: Callable[[int], object]) -> None:
        """Record what ``record`` puts into the stream that it is given; nothing runs.

        Raises:
            CkDeviceError: D003, the work cannot be recorded.
        """
        self._device = device
        device.activate()
        hip = hip_library()
        # Of its own, so that work of other threads and of the default stream is not recorded.
        stream = check(
            device,
            "hipStreamCreateWithFlags",
            hip.hipStreamCreateWithFlags(hip.hipStreamNonBlocking),
        )
        try:
            graph = _recorded(device, hip, stream, record)
        finally:
            check(device, "hipStreamDestroy", hip.hipStreamDestroy(stream))
        try:
            answer = hip.hipGraphInstantiateWithFlags(graph, 0)
            executable = check(device, "hipGraphInstantiateWithFlags", answer)
        finally:
            check(device, "hipGraphDestroy", hip.hipGraphDestroy(graph))
        self._pointer = ctypes.c_void_p(int(executable))
        self._launch = hip_calls().launch_graph
        weakref.finalize(self, _destroy, device, executable).atexit = False

    def launch(self, stream: int | None) -> None:
        """Put the work into a stream; None: the default one.

        Raises:
            CkDeviceError: D003, the launch was refused.
        """
        self._device.activate()
        pointer = None if stream is None else ctypes.c_void_p(stream)
        status = self._launch(self._pointer, pointer)
        if status:
            raise refused(self._device, "hipGraphLaunch", status)


def _recorded(device: Device, hip: Any, stream: Any, record: Callable[[int], object]) -> Any:
    mode = hip.hipStreamCaptureMode.hipStreamCaptureModeThreadLocal
    check(device, "hipStreamBeginCapture", hip.hipStreamBeginCapture(stream, mode))
    try:
        record(int(stream))
    except BaseException:
        hip.hipStreamEndCapture(stream)
        raise
    return check(device, "hipStreamEndCapture", hip.hipStreamEndCapture(stream))


def _destroy(device: Device, executable: Any) -> None:
    hip = hip_library()
    try:
        device.activate()
        # A launched graph may still run.
        device.wait()
        check(device, "hipGraphExecDestroy", hip.hipGraphExecDestroy(executable))
    except CkError:
        return  # a device that has failed has lost its graphs too
