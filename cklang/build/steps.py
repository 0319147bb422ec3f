# SPDX-License-Identifier: MIT
"""The build steps: source text in, files in a given folder out. Caching is someone else's.

=============  ===================================  =============================
step           makes                                takes (one core)
=============  ===================================  =============================
loop           ``mainloop.bc``: the main loop of    three to six seconds: CK
               kernels with other epilogues         Tile's templates
stencil        ``stencil.bc``: the CK Tile kernel   as long for the rest of a
               with the epilogue function open      product; ten for attention
host           ``host.so``: the host shim           a second and a half
fill           ``kernel.hsaco``: stencil and        a third of a second
               epilogue function as a code object
headers        ``headers.pch``: CK Tile's headers   four seconds; saves a third of
               read once for an architecture, or    every stencil, and more than
               for the host                         half of every host shim
=============  ===================================  =============================

Each step writes ``log.txt`` beside its files: every command, its time, its whole output.
"""

import hashlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from cklang.build import code_object
from cklang.build.halves import has_main_loop, loop_flag, main_loop
from cklang.build.schedules import INLINED, MOST_CURED, Schedule, schedules, without_barriers
from cklang.errors import error
from cklang.lowering import headers
from cklang.toolchain.compilers import CkTree, Toolchain, run_tool

HEADER = "cklang/gemm.hpp"
"""What every generated GEMM source includes first, and what a precompiled header holds."""

# Pairing scalar operations into vectors depends on what stands nearby, so it would make a filled
# stencil differ from the kernel compiled from source; on an epilogue it saves no instructions.
_OPTIMISE = ("-O3", "-fno-slp-vectorize")
# Facts that branches imply are looked for when the stencil is made. To look again in a filled one
# takes a tenth of the time; machine code was the same with and without.
_BACKEND = (*_OPTIMISE, "-mllvm", "-enable-constraint-elimination=0")
# Everything is inlined, however many blocks a kernel has: by itself the backend stops at 1,100. No
# identity has it, since kernels that it changes were refused without it (B011).
_INLINED = ("-mllvm", "-amdgpu-inline-max-bb=1000000000")
# Blocks are named after what was inlined there: templates of attention exceed the 1,024 characters
# that IR as text may have by itself.
_NAMES = ("-mllvm", "-non-global-value-max-name-size=1000000")
_LANGUAGE = ("-x", "hip", "-std=c++20", "-D__HIP_PLATFORM_AMD__", "-DNDEBUG", "-w")
_DEVICE = ("--cuda-device-only", "--no-gpu-bundle-output", *_OPTIMISE, "-gline-tables-only")
# Relocatable code keeps the functions global through which the halves of a stencil meet.
_HALF = ("-fgpu-rdc",)
# The host shim runs once per plan: compile time matters, its speed does not.
_HOST = ("--cuda-host-only", "-O1", "-fPIC", "-fvisibility=hidden")
_SECTIONS = ("-ffunction-sections", "-fdata-sections")
_FILL = ("-x", "c", "-std=c23", "-O1", "-ffp-contract=fast-honor-pragmas", "-gline-tables-only")
# Lanes of a wave rarely agree which side of a condition they take, so both are executed anyway. To
# select saves the branches, in the kernel and for the compiler: each adds blocks, for each element.
_SELECTED = ("-mllvm", "-two-entry-phi-node-folding-threshold=16")
_TWO_SIDED = ("ck_erf(", "ck_expm1(")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one build step made."""

    file: Path
    seconds: float
    log: Path
    schedule: str = ""
    """The instruction schedule: the name of a :class:`~cklang.build.schedules.Schedule`."""


def identity(toolchain: Toolchain, tree: CkTree) -> str:
    """Return a hex digest of what all steps depend on: compiler, CK Tile's headers, flags."""
    flags = repr((_LANGUAGE, _DEVICE, _BACKEND, _HALF, _HOST, _SECTIONS, _FILL, HEADER))
    parts = (toolchain.identity, tree.identity, flags)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def compile_headers(
    arch: str,
    folder: Path,
    toolchain: Toolchain,
    tree: CkTree,
    name: str = headers.PRECOMPILED,
    *,
    host: bool = False,
) -> Step:
    """Precompile CK Tile's headers: ``headers.pch``.

    ``name`` is a file of :mod:`cklang.lowering.headers`. The host's pass is the same for all
    ``arch``.
    """
    source = headers.precompiled(name)
    output = folder / "headers.pch"
    # What a header file holds is in the identity; when it was written does not matter.
    emit = ("-emit-pch", "-fpch-instantiate-templates", "-fno-pch-timestamp", "-o", str(output))
    prefix = _host_command if host else _half_command
    command = [
        *prefix(arch, folder, toolchain, tree),
        *("-fsyntax-only", *(part for flag in emit for part in ("-Xclang", flag))),
        str(source),
    ]
    return _run([command], output, toolchain)


def compile_loop(
    text: str,
    arch: str,
    folder: Path,
    toolchain: Toolchain,
    tree: CkTree,
    *,
    precompiled: Path | None = None,
) -> Step:
    """Compile a main loop (:func:`~cklang.build.halves.main_loop`) to bitcode: ``mainloop.bc``."""
    file, output = _write(folder, "mainloop.hip", text), folder / "mainloop.bc"
    command = [*_half_command(arch, folder, toolchain, tree), *_reuse(precompiled)]
    return _run([[*command, "-emit-llvm", "-c", str(file), "-o", str(output)]], output, toolchain)


def compile_stencil(
    source: str,
    arch: str,
    folder: Path,
    toolchain: Toolchain,
    tree: CkTree,
    *,
    precompiled: Path | None = None,
    loop: Callable[[], Path] | None = None,
) -> Step:
    """Compile a kernel with its epilogue open to LLVM bitcode: ``stencil.bc``.

    Where its main loop is a half of its own, ``loop`` returns that compiled, and is called while
    the rest is; without ``loop`` it is compiled below ``folder``. ``precompiled`` is a
    :func:`compile_headers` file of the same arch, toolchain and tree; it saves a third of the work.
    """
    start = time.perf_counter()
    file = _write(folder, "stencil.hip", source)
    half_of = _half_command(arch, folder, toolchain, tree)
    command = [*half_of, *_reuse(precompiled), "-emit-llvm", "-c"]
    output = folder / "stencil.bc"
    if not has_main_loop(source):
        return _run([[*command, str(file), "-o", str(output)]], output, toolchain)

    def own_loop() -> Path:
        text, beside = main_loop(source), folder / "mainloop"
        beside.mkdir(exist_ok=True)
        return compile_loop(text, arch, beside, toolchain, tree, precompiled=precompiled).file

    rest = folder / "epilogue.bc"
    half = [*command, "-DCKLANG_ONLY_EPILOGUE", loop_flag(source), str(file), "-o", str(rest)]
    with ThreadPoolExecutor(max_workers=1) as pool:
        compiled = pool.submit(loop or own_loop)
        _run([half], rest, toolchain)
        linked = ("-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(compiled.result()))
    join = [*_backend(arch, toolchain), str(rest), *linked, "-emit-llvm", "-c", "-o", str(output)]
    step = _run([join], output, toolchain)
    return replace(step, seconds=time.perf_counter() - start)


def compile_inline(
    source: str, arch: str, folder: Path, toolchain: Toolchain, tree: CkTree
) -> Step:
    """Compile a kernel whose epilogue stands in its source to a code object: ``kernel.hsaco``."""
    file = _write(folder, "kernel.hip", source)
    unit, output = folder / "kernel.o", folder / "kernel.hsaco"
    bitcode = folder / "kernel.bc"
    device = [*_device_command(arch, folder, toolchain, tree), *fill_flags(source)]
    commands = [
        [*device, "-emit-llvm", "-c", str(file), "-o", str(bitcode)],
        [*_backend(arch, toolchain), str(bitcode), "-c", "-o", str(unit)],
        toolchain.link_device([unit], output),
    ]
    return _run(commands, output, toolchain)


def compile_host(
    source: str,
    arch: str,
    folder: Path,
    toolchain: Toolchain,
    tree: CkTree,
    *,
    precompiled: Path | None = None,
) -> Step:
    """Compile the host shim of a kernel source: ``host.so``.

    ``precompiled`` is a :func:`compile_headers` file for the host.
    """
    file = _write(folder, "host.hip", source)
    unit, output = folder / "host.o", folder / "host.so"
    prefix = _host_command(arch, folder, toolchain, tree)
    command = [*prefix, *_reuse(precompiled), "-c", str(file), "-o", str(unit)]
    return _run([command, toolchain.link_plain([unit], output)], output, toolchain)


def link_fill(
    stencil: Path,
    fill: str,
    arch: str,
    folder: Path,
    toolchain: Toolchain,
    *,
    overlapped: bool = False,
) -> Step:
    """Fill a stencil with the C of its epilogue and link the code object: ``kernel.hsaco``.

    A kernel that spills, or into which a function is not inlined, is scheduled again
    (:mod:`cklang.build.schedules`).
    """
    output = folder / "kernel.hsaco"
    seconds = _run([_compile_fill(fill, arch, folder, toolchain)], output, toolchain).seconds
    least: int | None = None
    untried = list(schedules(overlapped=overlapped))
    chosen = untried[0]
    while untried:
        schedule = untried.pop(0)
        step = _scheduled(schedule, stencil, arch, folder, toolchain)
        seconds += step.seconds
        facts = code_object.read(step.file)
        if len(facts.functions) != 1:
            if schedule is INLINED:
                raise error("B011", names=", ".join(facts.functions), log=step.log)
            untried = [INLINED]
            continue
        spills = sum(
            kernel.vgpr_spills + (0 if schedule.spills_scalars else kernel.sgpr_spills)
            for kernel in facts.kernels
        )
        if least is None or spills < least:
            least, chosen = spills, schedule
            step.file.replace(output)
        if not spills or least > MOST_CURED:
            break
        step.file.unlink(missing_ok=True)
    (folder / "kernel.ll").unlink(missing_ok=True)
    return Step(file=output, seconds=seconds, log=step.log, schedule=chosen.name)


def _scheduled(
    schedule: Schedule, stencil: Path, arch: str, folder: Path, toolchain: Toolchain
) -> Step:
    """Turn a stencil and its compiled fill into a code object, ordered by ``schedule``."""
    backend = _backend(arch, toolchain)
    filled = [str(stencil), *_linked(folder)]
    if schedule.keeps_barriers:
        return _code_object([*backend, *schedule.flags], filled, folder, toolchain)
    text = folder / "kernel.ll"
    seconds = 0.0
    if not text.exists():
        ir = _run([[*backend, *filled, "-S", "-emit-llvm", "-o", str(text)]], text, toolchain)
        seconds = ir.seconds
        text.write_text(without_barriers(text.read_text(encoding="utf-8")), encoding="utf-8")
    step = _code_object([*backend, *_NAMES, *schedule.flags], [str(text)], folder, toolchain)
    return replace(step, seconds=step.seconds + seconds)


def _code_object(
    backend: Sequence[str], inputs: Sequence[str], folder: Path, toolchain: Toolchain
) -> Step:
    unit, output = folder / "kernel.o", folder / "scheduled.hsaco"
    commands = [[*backend, *inputs, "-c", "-o", str(unit)], toolchain.link_device([unit], output)]
    return _run(commands, output, toolchain)


def assembly(
    stencil: Path, fill: str | None, arch: str, folder: Path, toolchain: Toolchain
) -> Step:
    """Write the assembly of a filled stencil, or of bitcode with nothing open: ``kernel.s``."""
    output = folder / "kernel.s"
    commands = [] if fill is None else [_compile_fill(fill, arch, folder, toolchain)]
    linked = () if fill is None else _linked(folder)
    backend = _backend(arch, toolchain)
    commands.append([*backend, str(stencil), *linked, "-S", "-o", str(output)])
    return _run(commands, output, toolchain)


def device_assembly(
    source: str, arch: str, folder: Path, toolchain: Toolchain, tree: CkTree
) -> str:
    """Return the assembly of a HIP source's device side."""
    file = _write(folder, "probe.hip", source)
    output = folder / "probe.s"
    command = [*_device_command(arch, folder, toolchain, tree), "-S", str(file), "-o", str(output)]
    _run([command], output, toolchain)
    return output.read_text()


def fill_flags(fill: str) -> tuple[str, ...]:
    """Return what the compiler of a fill is told beside what it is always told.

    They are no part of :func:`identity`, on which stencils depend too.

    Example:
        >>> fill_flags("return ck_exp(acc);")
        ()
        >>> fill_flags("return ck_erf(acc);")
        ('-mllvm', '-two-entry-phi-node-folding-threshold=16')
    """
    return _SELECTED if any(name in fill for name in _TWO_SIDED) else ()


def _compile_fill(fill: str, arch: str, folder: Path, toolchain: Toolchain) -> list[str]:
    # Plain C, not HIP: there the function would be internal to its file and the link would do
    # nothing, without a word.
    file = _write(folder, "fill.c", fill)
    target = ("--target=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-nogpulib")
    include = (*headers.include_flags(), f"-ffile-prefix-map={folder}/=")
    output = ("-emit-llvm", "-c", str(file), "-o", str(folder / "fill.bc"))
    return [*toolchain.clang, *target, *_FILL, *fill_flags(fill), *include, *output]


def _linked(folder: Path) -> tuple[str, ...]:
    return ("-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(folder / "fill.bc"))


def _backend(arch: str, toolchain: Toolchain) -> list[str]:
    """The command that turns bitcode into machine code."""
    target = ("--target=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-nogpulib")
    return [*toolchain.clang, *target, *_BACKEND, *_INLINED, "-x", "ir"]


def _hip_command(arch: str, folder: Path, toolchain: Toolchain, tree: CkTree) -> list[str]:
    return [
        *toolchain.clang,
        *toolchain.host_target(),
        *_LANGUAGE,
        f"--offload-arch={arch}",
        *toolchain.host_headers(),
        *toolchain.hip_headers(*headers.folders()),
        *("-I", str(tree.include), f"-ffile-prefix-map={folder}/="),
    ]


def _device_command(arch: str, folder: Path, toolchain: Toolchain, tree: CkTree) -> list[str]:
    return [*_hip_command(arch, folder, toolchain, tree), *_DEVICE]


def _half_command(arch: str, folder: Path, toolchain: Toolchain, tree: CkTree) -> list[str]:
    return [*_device_command(arch, folder, toolchain, tree), *_HALF]


def _host_command(arch: str, folder: Path, toolchain: Toolchain, tree: CkTree) -> list[str]:
    return [*_hip_command(arch, folder, toolchain, tree), *_HOST, *_SECTIONS]


def _reuse(precompiled: Path | None) -> tuple[str, ...]:
    return ("-Xclang", "-include-pch", "-Xclang", str(precompiled)) if precompiled else ()


def _write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def _run(commands: Sequence[Sequence[str]], output: Path, toolchain: Toolchain) -> Step:
    log = output.parent / "log.txt"
    environment = toolchain.environment()
    runs = [run_tool(command, log=log, environment=environment) for command in commands]
    return Step(file=output, seconds=sum(run.seconds for run in runs), log=log)
