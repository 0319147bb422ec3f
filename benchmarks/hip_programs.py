# SPDX-License-Identifier: MIT
"""HIP programs on an emulated GPU: compiled, loaded and launched by HIP's own calls."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from cklang import emulator
from cklang.device.device import open_device
from cklang.emulator.hipcc import driver

_BUFFER, _SIZE, _END = 1, 2, 3
"""What comes next in the list that says where the arguments of a launch are."""


def hip_module() -> Any:
    """Return the module of HIP's functions, of the emulated GPUs."""
    emulator.load()
    from hip import hip

    return hip


def ok(answer: Any) -> Any:
    """Return the value that a HIP function gives."""
    status, *values = answer
    if status.value:
        raise RuntimeError(status.name)
    return values[0] if values else None


class Programs:
    """The kernels of a source file on an emulated GPU, which becomes the current one.

    Args:
        source: The file.
        gpu: The LLVM target.
        where: A folder for the code object.
    """

    def __init__(self, source: Path, gpu: str, where: Path) -> None:
        self.hip = hip_module()
        bundle = where / f"{source.stem}.hipfb"
        driver.build(["--genco", f"--offload-arch={gpu}", str(source), "-o", str(bundle)], print)
        ok(self.hip.hipSetDevice(open_device(f"emu:{gpu}").index))
        self._module = ok(self.hip.hipModuleLoadData(bundle.read_bytes()))

    def launch(
        self, name: str, groups: tuple[int, int, int], block: tuple[int, int, int], arguments: bytes
    ) -> None:
        """Launch a kernel, and wait for its end.

        Args:
            name: Of the kernel.
            groups: Workgroups.
            block: Threads of each.
            arguments: As they lie in memory.
        """
        function = ok(self.hip.hipModuleGetFunction(self._module, name.encode()))
        packed, size = ctypes.create_string_buffer(arguments), ctypes.c_size_t(len(arguments))
        places = (_BUFFER, ctypes.addressof(packed), _SIZE, ctypes.addressof(size), _END)
        extra = (ctypes.c_void_p * 5)(*places)
        ok(self.hip.hipModuleLaunchKernel(function, *groups, *block, 0, None, None, extra))
        ok(self.hip.hipDeviceSynchronize())
