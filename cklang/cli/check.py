# SPDX-License-Identifier: MIT
"""``cklang check``: run a program whose kernels are checked for mistakes.

cklang check ./saxpy 1000
cklang check --only races --only waits python train.py
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from cklang import knobs
from cklang.errors import error

__all__ = ["add", "run"]

_BY_SIGNAL = 128
"""What a shell adds to the number of the signal that ended a program."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--only",
        action="append",
        choices=(*knobs.SANITIZERS, *knobs.SPECIAL_SANITIZERS),
        metavar="CHECK",
        help=f"one of {', '.join(knobs.SANITIZERS)} (default: all of these), "
        f"{', '.join(knobs.SPECIAL_SANITIZERS)}; can be repeated",
    )
    parser.add_argument("program", nargs=argparse.REMAINDER, help="the program and its arguments")


def run(options: argparse.Namespace) -> int:
    """Run the program, and return its exit status as a shell gives it."""
    if not options.program:
        raise error("Z010", name="check", problem="it needs a program to run")
    checks = ",".join(options.only or knobs.SANITIZERS)
    environment = knobs.tool_environment(**{knobs.SANITIZE.name: checks})
    sys.stdout.flush()
    try:
        done = subprocess.run(options.program, env=environment)
    except OSError as problem:
        raise error("Z010", name=options.program[0], problem=str(problem)) from problem
    return done.returncode if done.returncode >= 0 else _BY_SIGNAL - done.returncode
