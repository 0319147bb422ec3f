# SPDX-License-Identifier: MIT
"""Run the kernels of `data/triton` (see `data/make_triton.py`) on emulated GPUs."""

import ctypes
import json
import struct
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.assembly import DEVICES, hip, ok

FOLDER = Path(__file__).parents[1] / "emulator" / "data" / "triton"
"""Code objects by GPU and name."""
_SCRATCH = 2
"""Pointers behind a kernel's own arguments: scratch memory that none of ours asks for."""

MADE: dict[str, dict[str, dict[str, Any]]] = json.loads((FOLDER / "kernels.json").read_text())[
    "kernels"
]
"""By GPU and name: the kernel's symbol, argument types, threads and bytes of LDS."""


def _pack(types: list[str], values: tuple[np.ndarray | int | float, ...]) -> bytes:
    """The kernel-argument bytes; every argument is aligned to its size."""
    form = "<"
    words: list[int | float] = []
    for kind, value in zip(types, values, strict=True):
        form += "Q" if kind[0] == "*" else {"i32": "i", "fp32": "f"}[kind]
        words.append(value.ctypes.data if isinstance(value, np.ndarray) else value)
        if kind[0] == "*" and struct.calcsize(form) % 8:
            raise ValueError("pointers come first")
    return struct.pack(form + "0Q" + "Q" * _SCRATCH, *words, *[0] * _SCRATCH)


@cache
def _function(gpu: str, name: str) -> Any:
    ok(hip().hipSetDevice(DEVICES.index(gpu)))
    module = ok(hip().hipModuleLoadData((FOLDER / gpu / f"{name}.hsaco").read_bytes()))
    return ok(hip().hipModuleGetFunction(module, MADE[gpu][name]["kernel"].encode()))


def run(gpu: str, name: str, grid: tuple[int, int], *values: np.ndarray | int | float) -> None:
    """Launch kernel `name` on `gpu` with these arguments and wait for it; arrays in place."""
    compiled = MADE[gpu][name]
    function = _function(gpu, name)
    ok(hip().hipSetDevice(DEVICES.index(gpu)))
    packed = _pack(compiled["arguments"], values)
    padded = packed + bytes(-len(packed) % 8)
    buffer, size = ctypes.create_string_buffer(padded), ctypes.c_size_t(len(padded))
    extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), 3)
    shape = (*grid, 1, compiled["threads"], 1, 1, compiled["shared"], None, None, extra)
    ok(hip().hipModuleLaunchKernel(function, *shape))
    ok(hip().hipDeviceSynchronize())
