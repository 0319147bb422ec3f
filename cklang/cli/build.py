# SPDX-License-Identifier: MIT
"""``cklang build``: build the kernels of a call without running them."""

from __future__ import annotations

import argparse
import sys

from cklang.cli.target import add_target, arguments_of, load_op

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_target(parser)


def run(options: argparse.Namespace) -> int:
    """Build and print one line a kernel."""
    op = load_op(options.op)
    for artifact in op.build(**arguments_of(op, options), device=options.device):
        how = "cached" if artifact.cached else f"built in {artifact.seconds:.2f} s"
        sys.stdout.write(f"{artifact.key.label}: {how}\n  {artifact.code_object}\n")
        sys.stdout.write(f"  {artifact.resources}\n")
    return 0
