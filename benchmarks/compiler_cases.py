# SPDX-License-Identifier: MIT
"""What one compiler makes of code that some clangs get wrong: JSON, as ``compilers.py`` asks.

``lost_store``: attention of gfx950 whose mask is computed with branches, as cklang did before it
knew better (``docs/emulator_fidelity.md``, *A store that clang loses*). ``missing_wait``: a scan
whose loop begins with ``__syncthreads()`` and ends with a store to LDS.

    CKLANG_CLANG=wheel/ziglang/zig python benchmarks/compiler_cases.py --finish other/ziglang/zig
"""

from __future__ import annotations

import argparse
import ctypes
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from unittest import mock

import numpy as np
from pass_bisection import (
    HAND_OVERS,
    bisected_passes,
    first_wrong,
    hand_over_flags,
    optional_pass,
    pairs_of,
    passes_between,
    portable,
    printed_ir,
)

from cklang import emulator
from cklang.build.builder import shared_builder
from cklang.build.schedules import SCHEDULES
from cklang.build.stencil_files import StencilFiles
from cklang.build.steps import link_fill
from cklang.device.device import hip_library, open_device
from cklang.emulator.hipcc import driver
from cklang.errors import CkBuildError, CkDeviceError, CkInternalError, CkMismatchError
from cklang.families.attention.host import AttentionOperand, AttentionShim
from cklang.families.attention.key import AttentionAlgorithm, AttentionPipeline
from cklang.lowering import headers
from cklang.toolchain.compilers import Kind, Toolchain, run_tool
from cklang.types import f16
from tests.support.attention_harness import Built, Inputs, check, filled_source, key_of

_ALGORITHM = AttentionAlgorithm(
    tile=(16, 32, 64, 64, 32, 64),
    warps=(1, 1, 1),
    warp_tile=(16, 16, 32),
    pipeline=AttentionPipeline.QR_ASYNC_TRLOAD,
    vector=8,
    block_per_cu=2,
)

_ROOT = Path(__file__).parents[1]

_MASK = """#include "cklang/attention_hole.h"
int ck_mask(CK_ATTENTION_PARAMS)
{
    const CK_GLOBAL int* mine = (const CK_GLOBAL int*)t[0].data;
    const CK_GLOBAL int* theirs = (const CK_GLOBAL int*)t[1].data;
    return j <= i + 9 && mine[i] == theirs[j];
}
"""

_BRANCHES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "attention.hpp": (
        (
            "(column < sink) & (column < keys) & (column < row + right_edge)",
            "column < sink && column < keys && column < row + right_edge",
        ),
        (
            "const bool out  = Base::IsOutOfBound(row, column);\n        return out & !seen;",
            "return !seen && Base::IsOutOfBound(row, column);",
        ),
        ('asm("" : "+v"(seen));', ""),
    ),
    "attention_transposed.hpp": (
        (
            (
                "const bool out = Base::IsOutOfBound(row, column);\n"
                "        return out | !lets_through<mask>(at, row, column);"
            ),
            "return Base::IsOutOfBound(row, column) || !lets_through<mask>(at, row, column);",
        ),
    ),
}
"""What stands in cklang's headers, and what makes branches of it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What came of a case."""

    case: str
    right: bool
    said: str = ""
    """What is wrong, or why nothing was compiled."""
    optional: str = ""
    """The optional pass with which the result begins to be wrong."""
    passes: str = ""
    """The passes of code generation that do it."""


def headers_with_branches(folder: Path) -> Path:
    """Copy cklang's headers, and compute masks with branches there; return the include folder.

    Raises:
        ValueError: The headers have changed, and :data:`_BRANCHES` has not.
    """
    include = folder / "include"
    for original in headers.folders():
        shutil.copytree(original, include, dirs_exist_ok=True)
    for name, changes in _BRANCHES.items():
        file = include / "cklang" / name
        text = file.read_text("utf-8")
        for ours, branching in changes:
            if ours not in text:
                raise ValueError(f"{name} has no {ours!r}")
            text = text.replace(ours, branching)
        file.write_text(text, "utf-8")
    return include


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """The kernel of the lost store, and a folder to compile in."""

    folder: Path
    stencil: StencilFiles

    @classmethod
    def compiled(cls, folder: Path) -> Attention:
        """Compile the stencil."""
        include = headers_with_branches(folder)
        key = key_of(f16, _ALGORITHM, "gfx950", mask="function")
        with mock.patch.object(headers, "folders", return_value=(include,)):
            stencil = shared_builder().stencil_of(key, filled_source(key, _MASK))
        return cls(folder=folder, stencil=stencil)

    def linked(self, *flags: str) -> tuple[Path, str]:
        """Compile it further with more flags; return the code object, and what clang said."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        only = (replace(SCHEDULES[0], flags=flags),)
        with mock.patch("cklang.build.schedules.SCHEDULES", only):
            step = link_fill(
                self.stencil.bitcode, _MASK, "gfx950", folder, shared_builder().toolchain
            )
        return step.file, step.log.read_text("utf-8")

    def finished(self, ir: str, program: Path) -> Path:
        """Compile printed IR further with another clang; return the code object."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        other = Toolchain(kind=Kind.ZIG, program=program, version="", fingerprint="")
        text, unit, output = (folder / f"kernel.{suffix}" for suffix in ("ll", "o", "hsaco"))
        text.write_text(portable(ir), "utf-8")
        target = ("--target=amdgcn-amd-amdhsa", "-mcpu=gfx950", "-nogpulib", "-O3", "-x", "ir")
        passes = ("-Xclang", "-disable-llvm-passes")
        compiled = [*other.clang, *target, *passes, str(text), "-c", "-o", str(unit)]
        for command in (compiled, other.link_device([unit], output)):
            run_tool(command, log=folder / "log.txt", environment=other.environment())
        return output

    def mistake(self, code: Path) -> str:
        """Run a code object; return what is wrong with its results, or nothing."""
        key = self.stencil.key
        source = filled_source(key, _MASK)
        face = AttentionShim(self.stencil.host_shim)
        rng = np.random.default_rng(31)
        mine, theirs = (rng.integers(0, 3, rows).astype(np.int32) for rows in (20, 31))
        try:
            check(
                Built(key=key, source=source, code=code, face=face),
                Inputs(heads=2, seqlen_q=20, seqlen_k=31),
                mask=lambda b, h, i, j: (j <= i + 9) & (mine[i] == theirs[j]),
                operands=tuple(
                    AttentionOperand(pointer=each.ctypes.data, extents=each.shape, strides=(1,))
                    for each in (mine, theirs)
                ),
            )
        except (CkDeviceError, CkMismatchError) as problem:
            return problem.message.splitlines()[0]
        return ""

    def optional_pass(self) -> str:
        """Return the name of the optional pass with which the result begins to be wrong."""
        _, log = self.linked("-mllvm", "-opt-bisect-limit=-1")
        return optional_pass(bisected_passes(log), self._is_right_after)

    def _is_right_after(self, limit: int) -> bool | None:
        """Whether the result is right after so many optional passes.

        None where they are too few: the mask is still a call, and there is no kernel.
        """
        try:
            code, _ = self.linked("-mllvm", f"-opt-bisect-limit={limit}")
        except CkInternalError:
            return None
        return not self.mistake(code)

    def generating_passes(self, program: Path) -> str:
        """Return the passes of code generation behind which ``program`` makes wrong code."""
        _, log = self.linked(*hand_over_flags())
        printed = printed_ir(log)
        names = [name for name in HAND_OVERS if name in printed]
        wrong = first_wrong(
            names, lambda name: not self.mistake(self.finished(printed[name], program))
        )
        before = pairs_of(names)
        if wrong not in before:
            return ""
        return ", ".join(passes_between(log, before[wrong], wrong))


def lost_store(folder: Path, finish: Path | None) -> Verdict:
    """Compile attention with a branching mask, run it, and look for the pass that breaks it."""
    kernel = Attention.compiled(folder)
    said = kernel.mistake(kernel.linked()[0])
    if not said:
        return Verdict(case="lost_store", right=True)
    return Verdict(
        case="lost_store",
        right=False,
        said=said,
        optional=kernel.optional_pass(),
        passes="" if finish is None else kernel.generating_passes(finish),
    )


def missing_wait(folder: Path, _: Path | None) -> Verdict:
    """Compile a scan, and run it with the check for races in LDS."""
    code = folder / "sorting.co"
    source = _ROOT / "tests" / "emulator" / "programs" / "sorting.hip"
    driver.build(["--genco", "--offload-arch=gfx942", str(source), "-o", str(code)], print)
    counts, threads = np.arange(512, dtype=np.uint32), 512
    pointer = ctypes.c_void_p(counts.ctypes.data)
    values = (ctypes.c_void_p * 1)(ctypes.addressof(pointer))
    device = open_device("emu:gfx942")
    function = device.load(code.read_bytes(), "_Z4scanPj")
    emulator.sanitize("races")
    try:
        hip_library().hipModuleLaunchKernel(
            function.handle, 1, 1, 1, threads, 1, 1, 4 * threads, None, values, None
        )
        device.synchronize()
    except CkDeviceError as problem:
        said = next(note for note in problem.notes if "race" in note)
        return Verdict(case="missing_wait", right=False, said=said.split(":")[0])
    finally:
        emulator.sanitize()
    return Verdict(case="missing_wait", right=True)


CASES: tuple[Callable[[Path, Path | None], Verdict], ...] = (lost_store, missing_wait)


def verdict(case: Callable[[Path, Path | None], Verdict], finish: Path | None) -> Verdict:
    """Return what comes of a case; where nothing can be compiled, why."""
    with tempfile.TemporaryDirectory(prefix="cklang-compilers-") as folder:
        try:
            return case(Path(folder), finish)
        except CkBuildError as problem:
            said = " ".join([problem.message, *problem.notes[:1]])
            return Verdict(case=case.__name__, right=False, said=f"not compiled: {said}")


def main() -> None:
    """Print a line of JSON for each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--finish", type=Path, help="a zig whose clang is right, to bisect with")
    asked = parser.parse_args()
    for case in CASES:
        print(json.dumps(asdict(verdict(case, asked.finish))), flush=True)


if __name__ == "__main__":
    main()
