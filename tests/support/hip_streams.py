# SPDX-License-Identifier: MIT
"""Kernels that wait for words of memory, and are enqueued on streams."""

import ctypes
from typing import Any

import numpy as np

from tests.support.assembly import Module, hip, ok

_LOAD = "  s_load_dwordx4 s[4:7], s[0:1], 0x0\n  v_lshlrev_b32 v1, 2, v0\n  s_waitcnt lgkmcnt(0)\n"
_POLL = (
    "{name}_poll:\n  s_sleep 1\n  global_load_dword v3, v2, s[4:5] sc1\n  s_waitcnt vmcnt(0)\n"
    "  v_cmp_eq_u32 vcc, 0, v3\n  s_cbranch_vccnz {name}_poll\n"
)
BODIES = {
    # output += 1
    "increment": _LOAD + "  global_load_dword v2, v1, s[6:7]\n  s_waitcnt vmcnt(0)\n"
    "  v_add_u32 v2, 1, v2\n  global_store_dword v1, v2, s[6:7]\n",
    # output *= 2
    "double": _LOAD + "  global_load_dword v2, v1, s[6:7]\n  s_waitcnt vmcnt(0)\n"
    "  v_lshlrev_b32 v2, 1, v2\n  global_store_dword v1, v2, s[6:7]\n",
    # wait until the first word of the source is set, then output += 1
    "await": _LOAD + "  v_mov_b32 v2, 0\n" + _POLL.format(name="await")
    + "  global_load_dword v2, v1, s[6:7]\n  s_waitcnt vmcnt(0)\n  v_add_u32 v2, 1, v2\n"
    "  global_store_dword v1, v2, s[6:7]\n",
    # the first workgroup waits until the first word of the source is set, the others end
    "first_awaits": _LOAD + "  v_mov_b32 v2, 0\n  s_cmp_lg_u32 s2, 0\n  s_cbranch_scc1 other\n"
    + _POLL.format(name="first_awaits") + "other:\n",
    # set the first word of the output
    "release": _LOAD + "  v_mov_b32 v2, 0\n  v_mov_b32 v3, 1\n"
    "  global_store_dword v2, v3, s[6:7]\n",
    "wild": "  v_mov_b32 v2, 0x1234\n  v_mov_b32 v3, 0x7fff\n"
    "  global_load_dword v4, v[2:3], off\n",
}  # fmt: skip


class Kernels(Module):
    """Kernels to enqueue without waiting."""

    def enqueue(
        self, name: str, source: int, output: int, stream: Any = None, grid: int = 1
    ) -> str:
        function = ok(hip().hipModuleGetFunction(self.handle, name.encode()))
        words = (ctypes.c_uint64 * 4)(source, output)
        size = ctypes.c_size_t(32)
        extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(words), 2, ctypes.addressof(size), 3)
        shape = (grid, 1, 1, 64, 1, 1, 0, stream, None, extra)
        return str(hip().hipModuleLaunchKernel(function, *shape)[0].name)


class Words:
    """Device memory of 64 words, and a flag."""

    def __init__(self) -> None:
        self.memory = ok(hip().hipHostMalloc(512, 0))
        self.address = int(self.memory)
        words = (ctypes.c_uint32 * 64).from_address(self.address)
        self.values = np.frombuffer(memoryview(words), np.uint32)
        self.flag = ctypes.c_uint32.from_address(self.address + 256)
        self.values[:] = 0
        self.flag.value = 0

    @property
    def flag_address(self) -> int:
        return self.address + 256


def stream(nonblocking: bool = False) -> Any:
    return ok(hip().hipStreamCreateWithFlags(int(nonblocking)))
