# SPDX-License-Identifier: MIT
"""What FlyDSL looks for in a ROCm installation, from the toolchain and the emulator.

That is the linker of code objects, the device libraries of mathematical functions and of printing,
and a HIP library with the name of ROCm 7's.
"""

import hashlib
import shlex
from pathlib import Path

from cklang.emulator.hip.headers import KERNELS, identity
from cklang.toolchain.built_library import intact, put_in_place
from cklang.toolchain.compilers import Toolchain, find_toolchain, run_tool
from cklang.toolchain.paths import cache_root

HIP_7 = "libamdhip64.so.7"
_HIP = "libamdhip64.so"
_LINKER = Path("llvm/bin/ld.lld")
_BITCODE = Path("amdgcn/bitcode")
_SOURCES = ("ocml.hip", "ockl.hip")
_BITCODE_FLAGS = (
    "-x",
    "hip",
    "-std=c++17",
    "-O3",
    "--cuda-device-only",
    "--no-gpu-bundle-output",
    "-fgpu-rdc",
    "-fuse-cuid=none",
    "-DNDEBUG",
    "-emit-llvm",
    "-c",
)


def toolkit(gpu: str) -> Path:
    """Return a folder that stands for ``ROCM_PATH``, made now if this machine does not have it."""
    toolchain = find_toolchain()
    texts = [_source(name).read_text(encoding="utf-8") for name in _SOURCES]
    facts = (gpu, toolchain.identity, identity(), *_BITCODE_FLAGS, *texts)
    key = hashlib.sha256("\0".join(facts).encode()).hexdigest()[:32]

    def build(folder: Path) -> None:
        with put_in_place(folder, HIP_7) as work:
            _write_linker(work / _LINKER, toolchain)
            for name in _SOURCES:
                _compile(_source(name), work, gpu, toolchain)
            _link_hip(work, toolchain)

    return intact(cache_root() / "flydsl" / key, build)


def _source(name: str) -> Path:
    return Path(__file__).with_name(name)


def _write_linker(path: Path, toolchain: Toolchain) -> None:
    """Write a program that is the toolchain's linker."""
    path.parent.mkdir(parents=True)
    caches = (f"{name}={value}" for name, value in toolchain.environment().items() if "ZIG" in name)
    command = shlex.join(["env", *caches, *toolchain.linker])
    path.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    path.chmod(0o755)


def _compile(source: Path, work: Path, gpu: str, toolchain: Toolchain) -> None:
    output = work / _BITCODE / source.with_suffix(".bc").name
    output.parent.mkdir(parents=True, exist_ok=True)
    command = [
        *toolchain.clang,
        *toolchain.host_target(),
        *_BITCODE_FLAGS,
        f"--offload-arch={gpu}",
        *toolchain.host_headers(),
        *toolchain.hip_headers(KERNELS),
        str(source),
        "-o",
        str(output),
    ]
    log = output.with_suffix(".log")
    run_tool(command, log=log, environment=toolchain.environment())


def _link_hip(work: Path, toolchain: Toolchain) -> None:
    """Link an empty library with the name of ROCm 7's that needs the emulator's by name."""
    source, item, stand_in = work / "empty.cpp", work / "empty.o", work / _HIP
    source.write_text("", encoding="utf-8")
    environment = toolchain.environment()
    shared = [*toolchain.linker, "-shared", "--no-as-needed", str(item)]
    for command in (
        toolchain.compile_cxx(source, item),
        [*shared, f"--soname={_HIP}", "-o", str(stand_in)],
        [*shared, str(stand_in), f"--soname={HIP_7}", "-o", str(work / HIP_7)],
    ):
        run_tool(command, log=work / "link.log", environment=environment)
    for path in (source, item, stand_in):
        path.unlink()
