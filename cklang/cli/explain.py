# SPDX-License-Identifier: MIT
"""``cklang explain``: say which kernels a call would run, and why.

cklang explain model.py:linear M=4096 N=4096 K=1024
cklang explain model.py:linear --shapes M=4096 N=4096 K=1024 --device emu:gfx950
"""

import argparse
import sys

from cklang.cli.target import add_target, arguments_of, load_op


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_target(parser)
    parser.add_argument(
        "--short", action="store_true", help="a line for each kernel: launches, bytes, time"
    )


def run(options: argparse.Namespace) -> int:
    """Print the explanation or the summary."""
    op = load_op(options.op)
    say = op.summary if options.short else op.explain
    sys.stdout.write(f"{say(**arguments_of(op, options), device=options.device)}".rstrip() + "\n")
    return 0
