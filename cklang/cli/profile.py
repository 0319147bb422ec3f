# SPDX-License-Identifier: MIT
"""``cklang profile``: run a program on emulated GPUs and say where the time of its kernels goes.

cklang profile ./saxpy 1000
cklang profile model.py:linear M=64 N=64 K=32     # one call of an op
cklang profile -o report.html -o timeline.perfetto.json python train.py
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cklang import knobs, places
from cklang.cli.target import status_of
from cklang.emulator.engine.recording import RecordedLaunch, recorded_launches
from cklang.emulator.profiler.session import FORMATS, Profile, ending_of
from cklang.errors import error


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "-o",
        "--output",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help=f"write the profile; names end in {', '.join(FORMATS)}; a name without an ending is a "
        "folder for rocprofv3's viewers (can be repeated)",
    )
    parser.add_argument(
        "--workgroups",
        type=int,
        default=8,
        metavar="N",
        help="workgroups of each launch that are recorded (default: 8)",
    )
    parser.add_argument("--listing", action="store_true", help="print the instructions, too")
    parser.add_argument(
        "program", nargs=argparse.REMAINDER, help="a program and its arguments, or an op and M=64"
    )


def run(options: argparse.Namespace) -> int:
    """Run the program, print its profile on stderr, and return its exit status.

    Raises:
        CkValueError: Z010, no program, or one that cannot be run; A130, no workgroups; D020, D021,
            the profile cannot be written.
    """
    if not options.program:
        raise error("Z010", name="profile", problem="it needs a program to run")
    if options.workgroups < 1:
        raise error("A130", got=options.workgroups)
    for path in options.output:
        ending_of(path)  # before the program runs
    status, launches = recorded(options.program, options.workgroups)
    profile = Profile(launches)
    sys.stderr.write(f"{str(profile).rstrip()}\n")
    if options.listing:
        for launch in profile.longest():
            sys.stderr.write(f"\n{launch.kernel}\n{profile.listing(launch.number)}\n")
    for path in options.output:
        profile.save(path)
    return status


def recorded(
    program: Sequence[str], workgroups: int, **settings: str
) -> tuple[int, list[RecordedLaunch]]:
    """Run a program; return its exit status and its launches, with some workgroups of each.

    Args:
        program: The program and its arguments, or an op and its sizes.
        workgroups: How many of each launch are recorded.
        settings: Knobs by environment name.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "records"
        folder.mkdir()
        status = status_of(program, **{knobs.PROFILE.name: f"{workgroups}:{folder}"}, **settings)
        places.read(places.notes_of(str(folder)))
        records = [file.read_bytes() for file in sorted(folder.glob("*.records"))]
    return status, [launch for record in records for launch in recorded_launches(record)]
