# SPDX-License-Identifier: MIT
"""The emulated GPU that FlyDSL compiles for, and on which its runtime launches."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from cklang import emulator, knobs
from cklang.device.device import Device, open_device
from cklang.emulator.flydsl.toolkit import HIP_7, toolkit
from cklang.errors import error


@contextmanager
def device(gpu: str) -> Iterator[Device]:
    """Let FlyDSL compile for an emulated GPU and launch there, inside of a ``with`` statement.

    Tensors are torch's in host memory, which kernels use in place. A launch returns when its kernel
    is done.

    Args:
        gpu: "gfx942", "gfx950", "gfx90a", "gfx1100" or "gfx1201".

    Raises:
        CkValueError: D001, no GPU of that name is emulated.
        CkUnsupportedError: E007, FlyDSL is not installed.
        CkDeviceError: At the end, a kernel has failed: FlyDSL's runtime does not look at errors.
        CkBuildError: B001 or B010, there is no compiler for the device functions, or it failed.
    """
    if find_spec("flydsl") is None:
        raise error("E007")
    chosen = open_device(f"emu:{gpu}")
    folder = toolkit(chosen.spec.name)
    # The runtime names HIP by its version 7; this library of that name passes on to the emulator.
    ctypes.CDLL(str(folder / HIP_7))
    before = knobs.export({"FLYDSL_GPU_ARCH": chosen.spec.name, "ROCM_PATH": str(folder)})
    try:
        chosen.activate()
        with emulator.blocking_launches():
            yield chosen
        chosen.synchronize()
    finally:
        knobs.export(before)
