# SPDX-License-Identifier: MIT
"""A process that measures, and may crash or hang: then it is replaced, and the session goes on."""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

from cklang.keys import AnyKey
from cklang.tune.database import Measurement, Status
from cklang.tune.measure import failed, measure
from cklang.tune.task import TuningTask

__all__ = ["Worker"]

_GRACE_SECONDS = 5.0


class Worker:
    """One process, started at the first task and again after each crash.

    Args:
        settings: Knobs by environment name for the process.
        limit: Seconds that one measurement may take, its build included.
    """

    def __init__(self, settings: Mapping[str, str], limit: float) -> None:
        self._settings = dict(settings)
        self._limit = limit
        self._process: Any = None
        self._link: Connection | None = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end()

    def measure(self, task: TuningTask, key: AnyKey) -> Measurement:
        """Return what measuring gave, whatever becomes of the process."""
        link = self._link or self._start()
        try:
            link.send((task.to_json(), key.to_json(), self._settings))
            if not link.poll(self._limit):
                self._end()
                note = f"it had not ended after {self._limit:g} s"
                return failed(key, Status.SLOW, note)
            return Measurement.from_json(link.recv())
        except (EOFError, OSError):
            return failed(key, Status.CRASHED, self._last_words())

    def _start(self) -> Connection:
        # Not forked: the parent may have threads and a device, and neither survives a fork.
        context = multiprocessing.get_context("spawn")
        self._link, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        return self._link

    def _last_words(self) -> str:
        process = self._process
        process.join(_GRACE_SECONDS)
        code = process.exitcode
        self._end()
        if code is None:
            return "its process closed the connection"
        return f"its process was killed by signal {-code}" if code < 0 else f"exit status {code}"

    def _end(self) -> None:
        if self._link is not None:
            self._link.close()
        if self._process is not None:
            self._process.kill()
            self._process.join(_GRACE_SECONDS)
        self._link = self._process = None


def _serve(link: Connection) -> None:
    """Measure what comes until nobody asks any more."""
    while True:
        try:
            task = link.recv()
        except EOFError:
            return
        link.send(measure(*task))
