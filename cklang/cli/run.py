# SPDX-License-Identifier: MIT
"""``cklang run``: run a Python program that is written for torch on an AMD GPU, without one.

cklang run --torch gfx942 train.py --steps 3
cklang run --torch gfx950 -m pytest tests
"""

import argparse
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

from cklang.errors import error


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--torch", required=True, metavar="GPU", help="the GPU that torch is to believe in"
    )
    parser.add_argument("-m", dest="module", metavar="MODULE", help="a module instead of a file")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="a Python file and its arguments")


def run(options: argparse.Namespace) -> int:
    """Run the program in this process; its exit status is this one's.

    Raises:
        CkUnsupportedError: E012, torch is not installed.
        CkValueError: Z010, there is no such program.
    """
    if find_spec("torch") is None:
        raise error("E012")
    from cklang.pretend import pretend

    name = options.module or next(iter(options.program), None)
    if name is None:
        raise error("Z010", name="run", problem="it needs a Python program to run")
    if not options.module and not Path(name).is_file():
        raise error("Z010", name=name, problem=f"there is no file {name}")
    sys.argv = [options.module, *options.program] if options.module else options.program
    sys.path.insert(0, str(Path.cwd() if options.module else Path(name).resolve().parent))
    with pretend(options.torch):
        if options.module:
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(name, run_name="__main__")
    return 0
