# SPDX-License-Identifier: MIT
"""``cklang inspect``: show what a call would run and why, or its C++."""

from __future__ import annotations

import argparse
import sys

from cklang.cli.target import add_target, arguments_of, load_op

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_target(parser)
    parser.add_argument("--cpp", action="store_true", help="print the generated C++ instead")


def run(options: argparse.Namespace) -> int:
    """Print the explanation or the source."""
    op = load_op(options.op)
    arguments = arguments_of(op, options)
    show = op.inspect if options.cpp else op.explain
    sys.stdout.write(show(**arguments, device=options.device))
    return 0
