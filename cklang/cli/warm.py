# SPDX-License-Identifier: MIT
"""``cklang warm``: compile the emulator and the kernels that everybody needs, in the background.

Products alone and with an epilogue, a convolution, attention (full and causal, each alone and with
a score of its own), RMSNorm, LayerNorm, softmax, pointwise functions, transposes and sums of rows,
of f16 and bf16, and products of 8-bit floats where the GPU has them. With ``--out`` they are
written to a folder that CKLANG_PREBUILT names, or that a wheel takes along; ``--run`` adds those of
a program's kernels.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from cklang import knobs
from cklang.arch import all_archs, arch
from cklang.device.device import target_of
from cklang.errors import error
from cklang.toolchain.paths import cache_root

_LOG = "warm.log"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--gpu",
        action="append",
        metavar="gfx942",
        help="a GPU, or all; may be repeated (default: that of the default device)",
    )
    parser.add_argument("--wait", action="store_true", help="do it now, and return when it is done")
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="write them to a new folder, and wait for that"
    )
    parser.add_argument(
        "--run",
        action="append",
        default=[],
        type=Path,
        metavar="PROGRAM",
        help="with --out: run a Python program, and write the stencils of its kernels, too; may be "
        "repeated",
    )


def run(options: argparse.Namespace) -> int:
    """Compile, here or in a process of its own."""
    gpus = _gpus(options.gpu)
    if options.out is not None:
        return _write(options.out, gpus, options.run)
    if options.wait:
        from cklang.prebuilding import compile_essentials

        sys.stdout.write(f"{compile_essentials(gpus)} kernels for {', '.join(gpus)} are built\n")
        return 0
    log = cache_root() / _LOG
    log.parent.mkdir(parents=True, exist_ok=True)
    words = [word for gpu in gpus for word in ("--gpu", gpu)]
    command = [sys.executable, "-m", f"{__package__}.main", "warm", "--wait", *words]
    # Another one may be writing it; they wait for each other's steps and do none twice.
    with log.open("ab") as output:
        # It goes on when this process and its terminal are gone, and logs each step.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env=knobs.tool_environment(CKLANG_LOG="info"),
        )
    sys.stdout.write(
        f"process {process.pid} compiles kernels for {', '.join(gpus)}; it writes {log}\n"
    )
    return 0


def _gpus(names: list[str] | None) -> list[str]:
    if not names:
        return [target_of(None).spec.name]
    known = [spec.name for spec in all_archs()]
    return known if "all" in names else [arch(name).name for name in names]


def _write(folder: Path, gpus: list[str], programs: list[Path]) -> int:
    from cklang.prebuilding import write_folder

    if folder.exists() and any(folder.iterdir()):
        raise error("K095", path=folder)
    count = write_folder(folder, gpus, programs=programs)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    sys.stdout.write(f"{folder}: {count} stencils and the emulator, {size:,d} bytes\n")
    return 0
