# SPDX-License-Identifier: MIT
"""A process that measures, and may crash or hang: then it is replaced, and the session goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import IO, Any

from cklang import knobs
from cklang.errors import CkError, error
from cklang.keys import AnyKey
from cklang.tune.database import Measurement, Status
from cklang.tune.measure import failed, measure
from cklang.tune.task import TuningTask

_GRACE_SECONDS = 5.0


_PROGRAM = f"from {__name__} import serve; serve(%d)"


class Worker:
    """One process, started at the first task and again after each crash.

    It is a program of its own, not a copy of the caller's: neither forked, since threads and
    devices do not survive that, nor one that runs the caller's script again to find its functions.
    """

    def __init__(self, settings: Mapping[str, str], limit: float) -> None:
        self._settings = dict(settings)
        self._limit = limit
        self._process: subprocess.Popen[bytes] | None = None
        self._link: Connection | None = None
        self._errors: IO[bytes] | None = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def measure(self, task: TuningTask, key: AnyKey) -> Measurement:
        """Return what measuring gave, whatever the kernel does to the process."""
        link = self._link or self._start()
        try:
            link.send((task.to_json(), key.to_json(), self._settings))
            if not link.poll(self._limit):
                self._end()
                note = f"it had not ended after {self._limit:g} s"
                return failed(key, Status.SLOW, note)
            answer, trace = link.recv()
        except (EOFError, OSError):
            return failed(key, Status.CRASHED, self._last_words())
        if answer is None:
            raise self._broken(trace)
        return Measurement.from_json(answer)

    def _start(self) -> Connection:
        self._link, theirs = Pipe()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - _end closes it
        descriptor = theirs.fileno()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM % descriptor],
            stdin=subprocess.DEVNULL,
            stderr=self._errors,
            pass_fds=[descriptor],
            env=knobs.tool_environment(PYTHONPATH=os.pathsep.join(sys.path)),
        )
        theirs.close()
        try:
            self._link.recv()
        except (EOFError, OSError):
            raise self._broken(self._last_words()) from None
        return self._link

    def _last_words(self) -> str:
        """Say how the process ended, and the last line that it wrote."""
        if self._process is None or self._errors is None:
            return "it was not started"
        try:
            code = self._process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            end = "its process closed the connection"
        else:
            end = f"its process was killed by signal {-code}" if code < 0 else f"exit status {code}"
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        self._end()
        return ": ".join([end, *lines[-1:]])

    def _broken(self, words: str) -> CkError:
        """Return the error of a process that failed for a reason other than the kernel."""
        self._end()
        *lines, problem = words.strip().splitlines()
        return error("N013", problem=problem, notes=lines)

    def _end(self) -> None:
        if self._link is not None:
            self._link.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait(_GRACE_SECONDS)
        if self._errors is not None:
            self._errors.close()
        self._link = self._process = self._errors = None


def serve(descriptor: int) -> None:
    """Measure what comes through the connection until nobody asks any more."""
    link = Connection(descriptor)
    link.send("ready")
    while True:
        try:
            task = link.recv()
        except EOFError:
            return
        link.send(_answer(task))


def _answer(task: tuple[Any, Any, Any]) -> tuple[Any, str]:
    """Return the measurement of a task, or None and what is wrong with the measuring."""
    try:
        return measure(*task), ""
    except Exception:  # it is passed on: the caller raises it, and stores nothing
        return None, traceback.format_exc()
