# SPDX-License-Identifier: MIT
"""``cklang rocm``: run a program with AMD's own runtime on emulated GPUs.

    cklang rocm rocminfo
    cklang rocm --gpus gfx942*2 ./saxpy 1000
    cklang rocm --root debian ./saxpy 1000     # with the libraries of unpacked Debian packages

AMD's libamdhip64 and libhsa-runtime64 run unchanged. A library that is preloaded below them
stands for the kernel driver and the GPUs (docs/rocm.md).
"""

import argparse
from pathlib import Path

from cklang.cli.target import status_of
from cklang.emulator.rocm import start
from cklang.errors import error


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--gpus",
        help="the machine's GPUs, such as gfx942*2 (default: CKLANG_GPUS, else one of each kind)",
    )
    parser.add_argument(
        "--root",
        type=Path,
        help="a folder of unpacked Debian packages, whose loader and libraries the program gets "
        "(default: those of this machine)",
    )
    parser.add_argument("program", nargs=argparse.REMAINDER, help="a program and its arguments")


def run(options: argparse.Namespace) -> int:
    """Run the program, and return its exit status as a shell gives it."""
    if not options.program:
        raise error("Z010", name="rocm", problem="it needs a program to run")
    words = start.command(options.program, options.root)
    return status_of(words, **start.settings(options.gpus))
