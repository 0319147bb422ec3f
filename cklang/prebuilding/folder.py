# SPDX-License-Identifier: MIT
"""The emulator and the essential stencils: compiled into the cache, or written to a folder."""

import runpy
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cklang.arch import arch
from cklang.build import bundle
from cklang.build.builder import Wanted, shared_builder
from cklang.build.parallel import built
from cklang.build.stencil_files import stencils_of
from cklang.emulator.engine.build import copy_library, library_path, portable_library
from cklang.prebuilding.essentials import EssentialCall, essential_calls
from cklang.toolchain.prebuilt import EMULATOR, STENCILS


def essential_kernels(
    gpus: Sequence[str], calls: Sequence[EssentialCall] | None = None
) -> list[Wanted]:
    """Return the kernels that the essential calls take, each once.

    ``calls`` replace those of :func:`~cklang.prebuilding.essentials.essential_calls`.
    """
    kernels = {
        (key.digest, functions.digest): (key, functions)
        for gpu in gpus
        for call in (essential_calls(arch(gpu)) if calls is None else calls)
        for key, functions in call.op.kernels(**call.arguments(), device=f"emu:{gpu}")
    }
    return list(kernels.values())


def compile_essentials(gpus: Sequence[str], calls: Sequence[EssentialCall] | None = None) -> int:
    """Compile the emulator and the essential kernels into the cache; return how many they are."""
    library_path()
    return len(built(essential_kernels(gpus, calls)))


def write_folder(
    folder: Path,
    gpus: Sequence[str],
    calls: Sequence[EssentialCall] | None = None,
    programs: Sequence[Path] = (),
) -> int:
    """Write what ``CKLANG_PREBUILT`` and the wheel's build hook take; return how many stencils.

    The emulator in it runs on every x86-64 CPU with AVX2, and uses AVX-512 where it is there.

    Args:
        folder: It does not exist, or is empty.
        gpus: The GPUs of the essential calls.
        calls: Others than :func:`~cklang.prebuilding.essentials.essential_calls`.
        programs: Python programs, which are run in this process first: the stencils of their
            kernels go along, but for those that come from bundles.
    """
    for program in programs:
        with _as_main(program):
            runpy.run_path(str(program), run_name="__main__")
    folder.mkdir(parents=True, exist_ok=True)
    copy_library(portable_library(), folder / EMULATOR)
    kernels, builder = essential_kernels(gpus, calls), shared_builder()
    used = stencils_of(builder.known.values(), builder.store)
    return bundle.write(
        folder / STENCILS,
        [*builder.stencils(kernels), *used],
        compiler=builder.toolchain.identity,
        headers=builder.tree.identity,
    )


@contextmanager
def _as_main(program: Path) -> Iterator[None]:
    """Let a program find its arguments and its neighbours as if Python had begun with it."""
    arguments, path = sys.argv, sys.path
    sys.argv, sys.path = [str(program)], [str(program.resolve().parent), *path]
    try:
        yield
    finally:
        sys.argv, sys.path = arguments, path
