# SPDX-License-Identifier: MIT
"""AITER's own code objects, which the package amd-aiter has, on emulated GPUs."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hip_programs import hip_module, ok

from cklang.emulator.engine.recording import RecordedLaunch, timing

_SLOT = 16
"""Bytes that each argument has."""


def binaries(gpu: str) -> Path:
    """Return the folder of the code objects of a GPU.

    Raises:
        FileNotFoundError: The package is not installed.
    """
    spec = importlib.util.find_spec("aiter_meta")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("the package amd-aiter is not installed")
    return Path(spec.submodule_search_locations[0]) / "hsa" / gpu


class Binary:
    """A kernel of a code object, on the current device."""

    def __init__(self, file: Path, symbol: str) -> None:
        self._hip: Any = hip_module()
        module = ok(self._hip.hipModuleLoadData(file.read_bytes()))
        self._function = ok(self._hip.hipModuleGetFunction(module, symbol.encode()))

    def record(
        self,
        groups: tuple[int, int, int],
        threads: int,
        values: Sequence[int | float],
        *,
        size: int,
        workgroups: int = 1,
    ) -> RecordedLaunch:
        """Run some workgroups; return what they executed.

        Args:
            groups: Workgroups along each axis.
            threads: Of a workgroup.
            values: The arguments; integers may be addresses.
            size: Bytes of the arguments, at least 16 for each.
            workgroups: How many run.
        """
        packed = np.zeros(size // _SLOT, f"V{_SLOT}")
        for place, value in enumerate(values):
            dtype = np.float32 if isinstance(value, float) else np.uint64
            packed[place : place + 1].view(dtype)[0] = value
        count = ctypes.c_size_t(packed.nbytes)
        extra = (ctypes.c_void_p * 5)(1, packed.ctypes.data, 2, ctypes.addressof(count), 3)
        shape = (*groups, threads, 1, 1, 0, None, None, extra)
        with timing(workgroups, alone=True) as recording:
            ok(self._hip.hipModuleLaunchKernel(self._function, *shape))
            ok(self._hip.hipDeviceSynchronize())
        return recording.launches[0]
