# SPDX-License-Identifier: MIT
"""``cklang judge``: is a kernel right, safe, honest and quick, asked without a GPU.

cklang judge task.py submission.py
cklang judge --gpu gfx950 --size rows=64 --size columns=300 task.py submission.py
cklang judge --format sarif --output verdict.sarif task.py submission.py

A task is a Python file: KernelBench's (Model, get_inputs, get_init_inputs), GPU MODE's
(generate_input, ref_kernel, check_implementation) or two functions (inputs, reference). A
submission has ModelNew, custom_kernel or submission. The exit status is 1 if it is refused.
"""

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

from cklang.cli.target import pairs_of
from cklang.device.device import target_of
from cklang.errors import error

_FORMATS = {"text": "__str__", "json": "to_json", "sarif": "to_sarif"}
_REFUSED = 1


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--gpu", help="the emulated GPU (default: as in a call of an op)")
    parser.add_argument(
        "--size",
        action="append",
        default=[],
        metavar="NAME=N",
        help="an argument of generate_input or inputs, or a variable of KernelBench's module",
    )
    parser.add_argument("--seeds", type=int, default=2, help="how many draws (default: 2)")
    parser.add_argument(
        "--seconds", type=float, default=300.0, help="limit of a submission's process (300)"
    )
    parser.add_argument(
        "--allow-torch", action="store_true", help="torch may compute beside the kernels"
    )
    parser.add_argument("--format", choices=_FORMATS, default="text", help="default: text")
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: stdout")
    parser.add_argument("task", type=Path, help="a Python file")
    parser.add_argument("submission", type=Path, help="a Python file")


def run(options: argparse.Namespace) -> int:
    """Judge, and write the verdict.

    Raises:
        CkUnsupportedError: E012, torch is not installed.
        CkValueError: Z010, a file is not there, or is no task; K047, K011, a size.
    """
    if find_spec("torch") is None:
        raise error("E012")
    from cklang.judge import Limits, judge

    verdict = judge(
        options.task,
        options.submission,
        gpu=options.gpu or target_of().spec.name,
        sizes=pairs_of(options.size),
        seeds=options.seeds,
        allow_torch=options.allow_torch,
        limits=Limits(seconds=options.seconds),
    )
    text: str = getattr(verdict, _FORMATS[options.format])() + "\n"
    if options.output is None:
        sys.stdout.write(text)
    else:
        try:
            options.output.write_text(text, encoding="utf-8")
        except OSError as problem:
            raise error("Z010", name=str(options.output), problem=str(problem)) from problem
    return 0 if verdict.accepted else _REFUSED
