# SPDX-License-Identifier: MIT
"""``cklang tune``: measure kernels of an op for some problems, and keep what was found.

Calls with the strategy ``tuned`` then take the best one. A session that was stopped goes on where
it was; ``--export``, ``--import`` and ``--merge`` move measurements between machines.
"""

import argparse
import json
import sys
from pathlib import Path

from cklang.cli.target import add_scheduler, add_target, asked_workers, calls_named, load_op
from cklang.errors import error
from cklang.tune.database import Database
from cklang.tune.session import autotune, database_path


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_target(parser, optional=True)
    add_session(parser, budget="60s")
    parser.add_argument(
        "--patience",
        type=int,
        default=8,
        metavar="N",
        help="give a problem up after so many kernels that are no better (default: 8)",
    )
    add_gradient(parser)
    group = parser.add_argument_group("the database")
    group.add_argument("--export", type=Path, metavar="FILE.json", help="write all of it as JSON")
    group.add_argument(
        "--import", type=Path, dest="load", metavar="FILE.json", help="add what was exported"
    )
    group.add_argument("--merge", type=Path, metavar="FILE", help="add another database")


def add_session(parser: argparse.ArgumentParser, *, budget: str) -> None:
    """Add the options that measuring takes, for one problem or for many."""
    parser.add_argument(
        "--problems", type=Path, metavar="FILE.csv", help="a row a problem, a column a dim"
    )
    parser.add_argument(
        "--budget", default=budget, metavar=budget, help=f"how long (default: {budget})"
    )
    parser.add_argument("--database", type=Path, metavar="FILE", help="where measurements are kept")
    add_scheduler(parser, "measure")
    parser.add_argument(
        "--limit", type=int, default=64, metavar="N", help="most kernels of a problem (default: 64)"
    )


def add_gradient(parser: argparse.ArgumentParser) -> None:
    """Add the options that ask for gradients instead of the op's own kernels."""
    parser.add_argument(
        "--gradient", action="store_true", help="of the op's gradients: ck.attention_grad of it"
    )
    parser.add_argument(
        "--deterministic", action="store_true", help="of those that are added in one order"
    )
    parser.add_argument("--bias", action="store_true", help="of those with that of the bias")


def gradient_of(options: argparse.Namespace) -> dict[str, bool]:
    """Return the options of :func:`add_gradient`; each of them implies gradients."""
    gradient = options.gradient or options.deterministic or options.bias
    return {"gradient": gradient, "deterministic": options.deterministic, "bias": options.bias}


def run(options: argparse.Namespace) -> int:
    """Measure and print what was found; then move measurements as asked."""
    moves = [options.export, options.load, options.merge]
    if options.op is None and not any(moves):
        raise error("K040", instead="give --export, --import or --merge")
    if options.op is not None:
        op = load_op(options.op)
        with asked_workers(options) as executor:
            report = autotune(
                op,
                calls_named(options),
                budget=options.budget,
                database=options.database,
                device=options.device,
                executor=executor,
                limit=options.limit,
                patience=options.patience,
                **gradient_of(options),
            )
        sys.stdout.write(f"{report}\n")
    if any(moves):
        _move(options)
    return 0


def _move(options: argparse.Namespace) -> None:
    with Database(options.database or database_path()) as database:
        if options.load is not None:
            added = database.load(_read(options.load))
            sys.stdout.write(f"{options.load}: {added} measurements added\n")
        if options.merge is not None:
            if not options.merge.exists():
                raise error("N006", path=options.merge, problem="there is no such file")
            with Database(options.merge) as other:
                sys.stdout.write(f"{options.merge}: {database.merge(other)} measurements added\n")
        if options.export is not None:
            data = database.export()
            options.export.write_text(json.dumps(data, indent=1) + "\n")
            sys.stdout.write(f"{options.export}: {len(data['measurements'])} measurements\n")


def _read(path: Path) -> object:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as problem:
        raise error("N009", path=path, problem=str(problem)) from problem
