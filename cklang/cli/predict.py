# SPDX-License-Identifier: MIT
"""``cklang predict``: run a program on emulated GPUs and predict the times of its kernels.

cklang predict ./saxpy 1000
cklang predict --board MI355X --cold ./saxpy 1000
cklang predict model.py:linear M=64 N=64 K=32     # one call of an op
"""

import argparse
import sys

from cklang.cli.profile import recorded
from cklang.emulator.clock.constants import gpu_of_board
from cklang.emulator.clock.sampling import SAMPLES, representative
from cklang.emulator.clock.sequence import COLD
from cklang.emulator.profiler.prediction import predicted
from cklang.errors import error


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--board", help="MI300X, MI300A, MI325X or MI355X (default: the GPU that the program uses)"
    )
    parser.add_argument(
        "--cold",
        action="store_true",
        help="each launch finds empty caches (default: what the launches before leave there)",
    )
    parser.add_argument("--kernel", metavar="NAME", help="kernels with this in their names alone")
    parser.add_argument(
        "program", nargs=argparse.REMAINDER, help="a program and its arguments, or an op and M=64"
    )


def run(options: argparse.Namespace) -> int:
    """Run the program, print the times of its launches on stderr, and return its exit status.

    Raises:
        CkValueError: Z010, no program, or one that cannot be run; A134, it launched nothing.
        CkUnsupportedError: K050, nothing is known of the board or of a GPU.
    """
    if not options.program:
        raise error("Z010", name="predict", problem="it needs a program to run")
    settings = {} if options.board is None else {"CKLANG_GPUS": gpu_of_board(options.board)}
    status, launches = recorded(options.program, SAMPLES, **settings)
    prediction = predicted(
        [representative(launch) for launch in launches],
        board=options.board,
        caches=COLD if options.cold else None,
    )
    sys.stderr.write(f"{prediction.table(options.kernel or '')}\n")
    return status
