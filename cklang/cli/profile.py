# SPDX-License-Identifier: MIT
"""``cklang profile``: run a program on emulated GPUs and say where the time of its kernels goes.

cklang profile ./saxpy 1000
cklang profile -o report.html -o timeline.perfetto.json python train.py
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from cklang import knobs
from cklang.emulator.recording import recorded_launches
from cklang.errors import error
from cklang.lowering import user_places
from cklang.profiler.session import FORMATS, Profile, ending_of

__all__ = ["add", "run"]

_BY_SIGNAL = 128
"""What a shell adds to the number of the signal that ended a program."""


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
    parser.add_argument("program", nargs=argparse.REMAINDER, help="the program and its arguments")


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
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "records"
        folder.mkdir()
        status = _run(options.program, f"{options.workgroups}:{folder}")
        user_places.read(user_places.notes_of(str(folder)))
        files = sorted(folder.glob("*.records"))
        launches = [each for file in files for each in recorded_launches(file.read_bytes())]
    profile = Profile(launches)
    sys.stderr.write(f"{str(profile).rstrip()}\n")
    if options.listing:
        for launch in profile.longest():
            sys.stderr.write(f"\n{launch.kernel}\n{profile.listing(launch.number)}\n")
    for path in options.output:
        profile.save(path)
    return status


def _run(program: list[str], asked: str) -> int:
    """Run a program whose launches are recorded; return its exit status as a shell gives it."""
    environment = knobs.tool_environment(**{knobs.PROFILE.name: asked})
    sys.stdout.flush()
    try:
        done = subprocess.run(program, env=environment)
    except OSError as problem:
        raise error("Z010", name=program[0], problem=str(problem)) from problem
    return done.returncode if done.returncode >= 0 else _BY_SIGNAL - done.returncode
