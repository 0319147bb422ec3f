# SPDX-License-Identifier: MIT
"""``cklang bench``: time calls, or measure problems times kernels, as tables and plots.

With ``--calls`` the calls themselves are timed, as users make them. Otherwise every legal kernel of
each problem is measured, and how far the heuristic's choice is from the best one is printed; the
plot goes to ``--plot`` (PNG or SVG).
"""

import argparse
import sys
from pathlib import Path

from cklang.cli.target import add_target, asked_workers, calls_named, filled_arguments, load_op
from cklang.cli.tune import add_gradient, add_session, gradient_of
from cklang.ops.bench import bench_calls
from cklang.tune.bench import Bench, bench


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_target(parser)
    add_session(parser, budget="10m")
    add_gradient(parser)
    parser.add_argument("--csv", type=Path, metavar="FILE.csv", help="write the table")
    parser.add_argument("--json", type=Path, metavar="FILE.json", help="write table and report")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw it (needs matplotlib)")
    group = parser.add_argument_group("timing calls")
    group.add_argument("--calls", action="store_true", help="time the calls themselves")
    group.add_argument("--markdown", type=Path, metavar="FILE.md", help="write their table")
    for name, default, words in _NUMBERS:
        group.add_argument(
            f"--{name}",
            type=int,
            default=default,
            metavar="N",
            help=f"{words} (default: {default})",
        )
    group.add_argument("--cold", action="store_true", help="overwrite the caches before each call")


_NUMBERS = (
    ("warmup", 3, "calls before the first one that counts"),
    ("rounds", 5, "how often the calls are timed"),
    ("iterations", 20, "calls of a round"),
    ("rotate", 1, "copies of the arguments that calls take in turn"),
)


def run(options: argparse.Namespace) -> int:
    """Measure, write what was asked for, and print the report."""
    if options.calls:
        return _time_calls(options)
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


def _time_calls(options: argparse.Namespace) -> int:
    op = load_op(options.op)
    settings = {name: getattr(options, name) for name, _, _ in _NUMBERS}
    table = bench_calls(
        op,
        [filled_arguments(op, named) for named in calls_named(options)],
        device=options.device,
        cold=options.cold,
        **settings,
    )
    writers = {options.csv: table.csv, options.json: table.json, options.markdown: table.markdown}
    for path, text in writers.items():
        if path is not None:
            path.write_text(text(), encoding="utf-8")
    sys.stdout.write("".join(f"{row}\n" for row in table.rows))
    return 0
