# SPDX-License-Identifier: MIT
"""``cklang debug``: stop kernels on emulated GPUs, step forward and back, print what they hold.

cklang debug ./saxpy 1000                        # a HIP program of cklang hipcc
cklang debug model.py:linear M=64 N=64 K=32      # one call of an op
cklang debug python train.py                     # any program: ops, Triton, pytest
cklang debug --batch -ex 'break 18' -x commands.txt ./saxpy
cklang debug --dap                               # a debug adapter for editors, on stdin and stdout
"""

import argparse
import sys
from pathlib import Path

from cklang.cli.target import words_of
from cklang.emulator.debugger.dap import serve, serve_port
from cklang.emulator.debugger.session import Session
from cklang.emulator.debugger.terminal import Terminal
from cklang.errors import error

_FAILED = 1


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "-x",
        "--commands",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        dest="files",
        help="run the commands of a file first (can be repeated)",
    )
    parser.add_argument(
        "-ex",
        "--eval",
        action="append",
        default=[],
        dest="evals",
        metavar="COMMAND",
        help="run a command, before those of files (can be repeated)",
    )
    parser.add_argument(
        "--batch", action="store_true", help="end after these commands, or the first that fails"
    )
    parser.add_argument(
        "--dap",
        nargs="?",
        type=int,
        const=0,
        metavar="PORT",
        help="speak the Debug Adapter Protocol: on stdin and stdout, or on a TCP port of this host",
    )
    parser.add_argument(
        "program", nargs=argparse.REMAINDER, help="a program and its arguments, or an op and M=64"
    )


def run(options: argparse.Namespace) -> int:
    """Run the terminal or the adapter; return 1 if a command of a batch failed.

    Raises:
        CkValueError: Z010, no program, or a file of commands that is not there.
    """
    if options.dap is not None:
        return _serve(options.dap)
    if not options.program:
        raise error("Z010", name="debug", problem="it needs a program to run")
    commands = [*options.evals, *(line for file in options.files for line in _lines(file))]
    with Session(words_of(options.program)) as session:
        terminal = Terminal(session, sys.stdout)
        goes_on = terminal.execute(commands)
        if options.batch:
            return _FAILED if terminal.failed else 0
        if goes_on or terminal.failed:
            _interact(terminal)
    return 0


def _serve(port: int) -> int:
    if port:
        serve_port(port, words_of)
    else:
        serve(sys.stdin.buffer, sys.stdout.buffer, words_of)
    return 0


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError as problem:
        raise error("Z010", name=str(path), problem=str(problem)) from problem


def _interact(terminal: Terminal) -> None:
    """Read commands until one ends the terminal; Ctrl-C at the prompt begins a new line."""
    while True:
        try:
            terminal.cmdloop()
        except KeyboardInterrupt:
            sys.stdout.write("\n")
        else:
            return
