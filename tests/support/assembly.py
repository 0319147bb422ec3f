# SPDX-License-Identifier: MIT
"""Small hand-written kernels for the emulator's tests: assembled, loaded and run through HIP."""

from __future__ import annotations

import ctypes
import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from cklang import emulator
from cklang.toolchain.compilers import find_toolchain, run_tool

DEVICES = ("gfx942", "gfx950", "gfx90a", "gfx1100", "gfx1201")
CDNA = DEVICES[:3]
WAVE = {gpu: 64 if gpu in CDNA else 32 for gpu in DEVICES}
"""Lanes of a wave."""

_KERNEL = """
.text
.globl {name}
.p2align 8
.type {name},@function
{name}:
{body}
  s_endpgm
.size {name}, .-{name}
.rodata
.p2align 6
.amdhsa_kernel {name}
  .amdhsa_group_segment_fixed_size {lds}
  .amdhsa_private_segment_fixed_size {scratch}
  .amdhsa_kernarg_size {arguments}
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_system_sgpr_workgroup_id_x 1
  .amdhsa_next_free_vgpr 128
  .amdhsa_next_free_sgpr 64
  {target}
  .amdhsa_float_denorm_mode_32 {denormals}
.end_amdhsa_kernel
"""

_METADATA = """
  - .args:
      - {{.offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}}
      - {{.offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global}}
    .group_segment_fixed_size: {lds}
    .kernarg_segment_align: 8
    .kernarg_segment_size: 32
    .max_flat_workgroup_size: 1024
    .name: {name}
    .private_segment_fixed_size: {scratch}
    .sgpr_count: 64
    .symbol: {name}.kd
    .vgpr_count: 128
    .agpr_count: 32
    .wavefront_size: {wave}
"""


def symbol(name: str) -> str:
    """What a kernel is called in its code object; tests may call it by any text."""
    return re.sub(r"^(?=\d)|\W", "_", name)


def assemble(
    bodies: Mapping[str, str],
    arch: str = "gfx942",
    *,
    lds: int = 0,
    denormals: int = 3,
    wave: int = 64,
    scratch: int = 0,
    arguments: int = 32,
    flags: Sequence[str] = (),
) -> bytes:
    """Return a code object with one kernel for each body; each takes two pointers.

    `denormals` is the f32 denormal mode: 3 keeps them, 0 flushes them. `wave` is 64, or 32 on
    RDNA. `lds` are bytes of a workgroup, `scratch` bytes of a lane, `arguments` bytes of memory
    that the kernel expects at its arguments; `flags` are clang's.
    """
    cdna = arch in CDNA
    extra = ".amdhsa_accum_offset 96" if cdna else f".amdhsa_wavefront_size32 {int(wave == 32)}"
    text = "".join(
        _KERNEL.format(
            name=symbol(name),
            body=body,
            lds=lds,
            scratch=scratch,
            arguments=arguments,
            denormals=denormals,
            target=extra,
        )
        for name, body in bodies.items()
    )
    kernels = "".join(
        _METADATA.format(name=symbol(name), lds=lds, scratch=scratch, wave=wave) for name in bodies
    )
    text += f".amdgpu_metadata\n---\namdhsa.version: [1, 2]\namdhsa.kernels:{kernels}...\n"
    text += ".end_amdgpu_metadata\n"
    tools = find_toolchain()
    lanes = () if cdna else (f"-m{'no-' if wave == 32 else ''}wavefrontsize64",)
    target = ("--target=amdgcn-amd-amdhsa", f"-mcpu={arch}", *lanes, *flags)
    with TemporaryDirectory() as name:
        folder = Path(name)
        source, middle, output = (folder / f"{arch}.{end}" for end in ("s", "o", "co"))
        source.write_text(text)
        compiling = (*tools.clang, *target, "-x", "assembler", "-c", str(source), "-o", str(middle))
        for command in (compiling, tools.link_device([middle], output)):
            run_tool(command, log=folder / "log", environment=tools.environment())
        return output.read_bytes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A kernel of one wave: four dwords at a time come to some registers, and others go back."""

    reads: tuple[int, ...]
    """The first register of each four that a lane reads, in the order of memory."""
    writes: tuple[int, ...]
    """The same of what it writes: as many as a power of two."""

    def body(self, text: str) -> str:
        """The kernel around some lines."""
        loads, stores = (
            [
                (f"v[{first}:{first + 3}]", f"s[{base}:{base + 1}] offset:{16 * n}")
                for n, first in enumerate(registers)
            ]
            for registers, base in ((self.reads, 4), (self.writes, 6))
        )
        lines = (
            "s_load_dwordx4 s[4:7], s[0:1], 0x0",
            f"v_mul_u32_u24 v1, {16 * len(loads)}, v0",
            "s_waitcnt lgkmcnt(0)",
            *(f"global_load_dwordx4 {register}, v1, {place}" for register, place in loads),
            "s_waitcnt vmcnt(0)",
            text,
            f"v_lshlrev_b32 v1, {(16 * len(stores)).bit_length() - 1}, v0",
            "s_nop 15",
            *(f"global_store_dwordx4 v1, {register}, {place}" for register, place in stores),
        )
        return "".join(f"  {line}\n" for line in lines)

    def run(self, module: Module, name: str, data: np.ndarray) -> np.ndarray:
        """[64, dwords] in, of which the last may be left out; [64, dwords] out."""
        source = np.zeros((64, 4 * len(self.reads)), np.uint32)
        source[:, : data.shape[1]] = data
        output = np.zeros((64, 4 * len(self.writes)), np.uint32)
        assert module.launch(name, source, output) == "hipSuccess", emulator.last_error()
        return output


_LANES = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_mul_u32_u24 v1, 48, v0
  s_waitcnt lgkmcnt(0)
  global_load_dwordx4 v[2:5], v1, s[4:5]
  global_load_dwordx4 v[6:9], v1, s[4:5] offset:16
  global_load_dwordx4 v[10:13], v1, s[4:5] offset:32
  s_mov_b32 vcc_lo, 0x0f0f3355
  s_mov_b32 vcc_hi, 0x00ff00ff
  s_waitcnt vmcnt(0)
{text}
  s_mov_b64 exec, -1
  v_mov_b32 v14, vcc_lo
  v_mov_b32 v15, vcc_hi
  v_mul_u32_u24 v1, 24, v0
  s_waitcnt vmcnt(0) lgkmcnt(0)
  global_store_dwordx4 v1, v[10:13], s[6:7]
  global_store_dwordx2 v1, v[14:15], s[6:7] offset:16
"""
VCC = 0x00FF00FF0F0F3355
"""What :func:`lanes_body` puts in vcc before the text."""


def lanes_body(text: str) -> str:
    """A kernel for :func:`run_lanes`: a lane's dwords are in v[2:13], results in v[10:13]."""
    return _LANES.format(text=text)


def run_lanes(module: Module, name: str, data: np.ndarray) -> np.ndarray:
    """[64, at most 12] dwords in, [64, 6] out: v10 to v13, and vcc in each lane."""
    source = np.zeros((64, 12), np.uint32)
    source[:, : data.shape[1]] = data
    output = np.zeros((64, 6), np.uint32)
    assert module.launch(name, source, output) == "hipSuccess", emulator.last_error()
    return output


def hip() -> Any:
    """hip-python, talking to the emulator."""
    emulator.load()
    return importlib.import_module("hip").hip


def ok(answer: Sequence[Any]) -> Any:
    """The value of a HIP call that must succeed."""
    status, *values = answer
    assert status == hip().hipError_t.hipSuccess, f"{status.name}: {emulator.last_error()}"
    return values[0] if values else None


def status(answer: Any) -> str:
    """The error that a HIP call answers with, by its name."""
    return str((answer[0] if isinstance(answer, tuple) else answer).name)


def kind(name: str) -> Any:
    """A direction of copies: "HostToDevice"."""
    return getattr(hip().hipMemcpyKind, f"hipMemcpy{name}")


def call(name: str, *arguments: object) -> int:
    """A HIP call by its C name; handles and addresses are integers above 2^31."""
    plain = (
        ctypes.c_void_p(each) if type(each) is int and each > 2**31 else each for each in arguments
    )
    return int(getattr(emulator.load(), name)(*plain))


def device_properties(number: int) -> tuple[Any, Any]:
    """Status and properties of a device, by whichever way this hip-python asks for them."""
    api = hip()
    try:
        status, properties = api.hipGetDeviceProperties(number)
    except TypeError:  # before version 10 the structure is passed in
        properties = api.hipDeviceProp_t()
        (status,) = api.hipGetDeviceProperties(properties, number)
    return status, properties


class Module:
    """A loaded code object on one device."""

    def __init__(self, image: bytes, device: str = "gfx942") -> None:
        self.device = DEVICES.index(device)
        ok(hip().hipSetDevice(self.device))
        self.handle = ok(hip().hipModuleLoadData(image))

    def launch(
        self, name: str, *arrays: np.ndarray | int, grid: int = 1, block: int = 64, lds: int = 0
    ) -> Any:
        """Run a kernel on arrays, in place, or on addresses; the status of waiting for it."""
        ok(hip().hipSetDevice(self.device))
        function = ok(hip().hipModuleGetFunction(self.handle, symbol(name).encode()))
        addresses = (each if isinstance(each, int) else each.ctypes.data for each in arrays)
        words = (ctypes.c_uint64 * 4)(*addresses)
        size = ctypes.c_size_t(32)
        extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(words), 2, ctypes.addressof(size), 3)
        shape = (grid, 1, 1, block, 1, 1, lds, None, None, extra)
        ok(hip().hipModuleLaunchKernel(function, *shape))
        return hip().hipDeviceSynchronize()[0].name

    def fault(self, name: str, *arrays: np.ndarray | int, **shape: int) -> str:
        """Run a kernel; what is reported of it, or "". The device works again afterwards."""
        if self.launch(name, *arrays, **shape) == "hipSuccess":
            return ""
        message = emulator.fault(self.device)
        ok(hip().hipDeviceReset())
        return message


def assembled(bodies: Mapping[str, str], arch: str = "gfx942", **how: Any) -> Module:
    """Assemble and load kernels; ``how`` are further arguments of :func:`assemble`."""
    return Module(assemble(bodies, arch, **how), arch)


def fault_of(module: Module, name: str, waves: int = 2) -> str:
    """Run a kernel of a workgroup of some waves on zeros; return what is reported, or ""."""
    data = np.zeros(256, np.uint32)
    return module.fault(name, data, data, block=waves * WAVE[DEVICES[module.device]])
