# SPDX-License-Identifier: MIT
"""Kernels of CK Tile that cklang does not generate, compiled from ``kernels`` and launched."""

import ctypes
import struct
from pathlib import Path
from typing import Any

import numpy as np

from cklang.build.steps import compile_host, compile_inline
from cklang.toolchain.compilers import find_ck_tree, find_toolchain
from tests.support.assembly import DEVICES, hip, ok


class Unit:
    """One compiled file; ``defines`` are the macros it asks for."""

    def __init__(self, name: str, arch: str, folder: Path, **defines: str) -> None:
        self.device = DEVICES.index(arch)
        macros = "".join(f"#define {key} {value}\n" for key, value in defines.items())
        text = (Path(__file__).parents[1] / "emulator" / "kernels" / f"{name}.hip").read_text(
            "utf-8"
        )
        self._build = (macros + text, arch, folder, find_toolchain(), find_ck_tree())
        image = compile_inline(*self._build).file.read_bytes()
        ok(hip().hipSetDevice(self.device))
        self._module = ok(hip().hipModuleLoadData(image))

    def host(self) -> ctypes.CDLL:
        """The file's functions for the host."""
        return ctypes.CDLL(str(compile_host(*self._build).file))

    def launch(
        self, kernel: str, arguments: bytes, grid: tuple[int, ...], block: int, repeat: int = 1
    ) -> None:
        """Run a kernel and wait for it."""
        ok(hip().hipSetDevice(self.device))
        function = ok(hip().hipModuleGetFunction(self._module, kernel.encode()))
        buffer = ctypes.create_string_buffer(arguments, len(arguments))
        size = ctypes.c_size_t(len(arguments))
        extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), 3)
        for _ in range(repeat):
            ok(hip().hipModuleLaunchKernel(function, *grid, block, 1, 1, 0, None, None, extra))
            ok(hip().hipDeviceSynchronize())


class _Sizes(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("q", "k", "v", "o", "log_sums")),
        *((name, ctypes.c_int) for name in ("batch", "heads", "length", "causal")),
        ("scale", ctypes.c_float),
    )


class Attention(Unit):
    """CK Tile's forward attention for f16 or bf16; ``masked`` for the one that can be causal."""

    def __init__(self, arch: str, folder: Path, element: str, *, masked: bool) -> None:
        super().__init__(
            "attention", arch, folder, ELEMENT=f"ck_tile::{element}", MASKED=str(masked).lower()
        )
        self._describe: Any = self.host().describe

    def run(
        self, q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """O and the logs of the sums for q, k, v[batch, heads, length, 128]."""
        batch, heads, length, depth = q.shape
        o, log_sums = np.zeros_like(q), np.zeros((batch, heads, length), np.float32)
        places = (array.ctypes.data for array in (q, k, v, o, log_sums))
        sizes = _Sizes(*places, batch, heads, length, causal, depth**-0.5)
        arguments, shape = ctypes.create_string_buffer(1024), (ctypes.c_uint * 6)()
        used = self._describe(ctypes.byref(sizes), arguments, shape)
        self.launch("attention", arguments.raw[:used], tuple(shape[:3]), shape[3])
        return o, log_sums


def plain(*arguments: np.ndarray | int) -> bytes:
    """The argument bytes of a kernel that takes pointers first and then 32-bit integers."""
    words = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments]
    form = "".join("Q" if isinstance(a, np.ndarray) else "i" for a in arguments)
    return struct.pack(f"<{form}", *words)
