# SPDX-License-Identifier: MIT
"""``cklang inspect``: show what a call would run and why, its C++ or its IR."""

from __future__ import annotations

import argparse
import sys

from cklang.cli.target import add_target, arguments_of, load_op

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_target(parser)
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--cpp", action="store_true", help="print the generated C++ instead")
    instead.add_argument(
        "--ir", action="store_true", help="print the program instead, as a .ckir file has it"
    )


def run(options: argparse.Namespace) -> int:
    """Print the explanation, the source or the program."""
    op = load_op(options.op)
    arguments = arguments_of(op, options)
    if options.ir:
        sys.stdout.write(f"{op.ir(**arguments)}\n")
        return 0
    show = op.inspect if options.cpp else op.explain
    sys.stdout.write(show(**arguments, device=options.device))
    return 0
