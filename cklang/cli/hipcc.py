# SPDX-License-Identifier: MIT
"""``cklang hipcc``: compile a C++ HIP program that runs without a GPU.

    cklang hipcc saxpy.cpp -o saxpy && ./saxpy

Takes the words that clang and ROCm's hipcc take: sources, objects, -o -c -S -E -shared, -O -I -D
-std -W -f -m, -l -L -Wl, -x, --offload-arch=gfx942,gfx950 (native: the current device), --genco,
--offload-device-only, --offload-host-only, --emit-static-lib, -fopenmp, -v, --version.
"""

import argparse
import sys

from cklang.emulator.hipcc import driver

WORDS = True
"""Every word of the command line is this command's own, also those that begin with a dash."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("words", nargs="*")


def run(options: argparse.Namespace) -> int:
    """Compile and link."""
    if not options.words or options.words[0] in ("-h", "--help"):
        sys.stdout.write(f"{__doc__}\n")
        return 0
    if "--version" in options.words:
        sys.stdout.write(driver.version())
        return 0
    driver.build(options.words, sys.stderr.write)
    return 0
