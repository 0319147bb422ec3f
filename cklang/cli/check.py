# SPDX-License-Identifier: MIT
"""``cklang check``: run a program whose kernels are checked for mistakes.

cklang check ./saxpy 1000
cklang check model.py:linear M=64 N=64 K=32      # one call of an op
cklang check --only races --only waits python train.py
cklang check --format sarif --output report.sarif --suppressions known.txt ./saxpy 1000
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from cklang import knobs
from cklang.cli.target import status_of
from cklang.emulator.engine.reports import CheckReport, read_reports, to_json, to_sarif
from cklang.errors import error

_REPORTED = 1
"""The exit status of a program that ended well with reports."""

_FORMATS: dict[str, Callable[[Sequence[CheckReport]], str]] = {"json": to_json, "sarif": to_sarif}
_TEXT = "text"


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
    parser.add_argument(
        "--format",
        choices=(_TEXT, *_FORMATS),
        default=_TEXT,
        help="text: the program prints the first report and ends there (default); json, sarif: "
        "it goes on behind reports, and all of them are written at its end, one for each cause",
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="where json or sarif goes (default: stdout)"
    )
    parser.add_argument(
        "--suppressions",
        type=Path,
        metavar="FILE",
        help="reports to ignore: lines of a check, or *, and a pattern of kernels or FILE:LINE",
    )
    parser.add_argument(
        "program", nargs=argparse.REMAINDER, help="a program and its arguments, or an op and M=64"
    )


def run(options: argparse.Namespace) -> int:
    """Run the program, and return its exit status as a shell gives it."""
    if not options.program:
        raise error("Z010", name="check", problem="it needs a program to run")
    settings = {knobs.SANITIZE.name: ",".join(options.only or knobs.SANITIZERS)}
    if options.suppressions is not None:
        settings[knobs.SUPPRESSIONS.name] = str(options.suppressions.absolute())
    if options.format == _TEXT:
        return status_of(options.program, **settings)
    with tempfile.TemporaryDirectory(prefix="cklang-check-") as folder:
        written = Path(folder) / "reports"
        status = status_of(options.program, **{**settings, knobs.REPORTS.name: str(written)})
        reports = read_reports(written)
    _put(_FORMATS[options.format](reports) + "\n", options.output)
    return status or _REPORTED * bool(reports)


def _put(text: str, path: Path | None) -> None:
    if path is None:
        sys.stdout.write(text)
        return
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise error("Z010", name=str(path), problem=str(problem)) from problem
