# SPDX-License-Identifier: MIT
"""``cklang bench``: measure problems times kernels, as a table, a report and plots.

The table goes to ``--csv`` and ``--json``, the plot to ``--plot`` (PNG or SVG); the report, oracle
against heuristic, is printed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cklang.cli.target import add_target, asked_workers, calls_named, load_op
from cklang.cli.tune import add_gradient, add_session, gradient_of
from cklang.tune.bench import Bench, bench

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_target(parser)
    add_session(parser, budget="10m")
    add_gradient(parser)
    parser.add_argument("--csv", type=Path, metavar="FILE.csv", help="write the table")
    parser.add_argument("--json", type=Path, metavar="FILE.json", help="write table and report")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw it (needs matplotlib)")


def run(options: argparse.Namespace) -> int:
    """Measure, write what was asked for, and print the report."""
    with asked_workers(options) as executor:
        results = bench(
            load_op(options.op),
            calls_named(options),
            budget=options.budget,
            database=options.database,
            device=options.device,
            executor=executor,
            limit=options.limit,
            **gradient_of(options),
        )
    _write(options, results)
    sys.stdout.write(f"{results.oracle()}\n")
    return 0


def _write(options: argparse.Namespace, results: Bench) -> None:
    if options.csv is not None:
        options.csv.write_text(results.csv())
    if options.json is not None:
        options.json.write_text(results.json())
    if options.plot is not None:
        from cklang.cli.plot import draw

        draw(results, options.plot)
