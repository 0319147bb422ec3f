# SPDX-License-Identifier: MIT
"""The HIP calls of a new process up to its first result, and those of a repeated call, bound once.

hip-python wraps the arguments and the answer of each call in new objects, which takes longer than
the call itself. Its C interface has the same functions bare; :mod:`ctypes` calls these with
arguments that are prepared once, and they return a status: 0, or the number of a ``hipError_t``.
hip-python's own functions need its classes too: 170 enumerations, whose import takes 20 ms.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

Call = Callable[..., int]


class HipCalls(NamedTuple):
    """Functions of the HIP library that this process uses; each lets other threads run."""

    set_device: Call
    """hipSetDevice(number)."""
    launch: Call
    """hipModuleLaunchKernel, pointers as :mod:`ctypes` objects."""
    launch_graph: Call
    """hipGraphLaunch, pointers as :mod:`ctypes` objects."""
    synchronize: Call
    """hipStreamSynchronize(None or a ``c_void_p``)."""
    count_devices: Call
    """hipGetDeviceCount, with where the number goes."""
    properties: Call
    """hipGetDeviceProperties, with where they go and the device's number."""
    load_module: Call
    """hipModuleLoadData, with where the module goes and the code object."""
    find_function: Call
    """hipModuleGetFunction, with where the function goes, the module and the name."""


@cache
def hip_calls() -> HipCalls:
    """Return the functions; the process's HIP library must have been chosen."""
    cyhip = import_module("rocm.bindings.cyhip")
    capsules: dict[str, Any] = cyhip.__pyx_capi__
    return HipCalls(
        set_device=_bound(capsules["hipSetDevice"]),
        launch=_bound(capsules["hipModuleLaunchKernel"]),
        launch_graph=_bound(capsules["hipGraphLaunch"]),
        synchronize=_bound(capsules["hipStreamSynchronize"]),
        count_devices=_bound(capsules["hipGetDeviceCount"]),
        properties=_bound(capsules["hipGetDeviceProperties"]),
        load_module=_bound(capsules["hipModuleLoadData"]),
        find_function=_bound(capsules["hipModuleGetFunction"]),
    )


def _bound(capsule: Any) -> Call:
    api = ctypes.pythonapi
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", api)
    )
    # Without types of arguments ctypes has nothing to convert: numbers go as int.
    return ctypes.CFUNCTYPE(ctypes.c_int)(pointer_of(capsule, name_of(capsule)))
