# SPDX-License-Identifier: MIT
"""Say that something takes long: a bar on a terminal, log lines elsewhere; nothing if quick."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING

from cklang.toolchain.log import logger

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["Steps"]

_PATIENCE_SECONDS = 1.0


class Steps:
    """A number of steps that are done one after another or at once; safe to tell from threads."""

    def __init__(self, title: str, total: int) -> None:
        self._title = title
        self._total = total
        self._done = 0
        self._lock = threading.Lock()
        self._timer = threading.Timer(_PATIENCE_SECONDS, self._speak)
        self._timer.daemon = True
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._ended = False

    def __enter__(self) -> Steps:
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._ended = True
            if self._bar is not None:
                self._bar.stop()

    def done(self, name: str, seconds: float) -> None:
        """Tell that one step is done."""
        with self._lock:
            self._done += 1
            done = self._done
            if self._bar is not None and self._task is not None:
                self._bar.update(self._task, completed=self._done)
        logger("build").info("%d of %d, %s: %.2f s", done, self._total, name, seconds)

    def _speak(self) -> None:
        with self._lock:
            if self._ended:
                return
            if not sys.stderr.isatty():
                logger("build").info("%s: %d of %d done", self._title, self._done, self._total)
                return
            self._bar, self._task = _bar(self._title, self._total, self._done)


def _bar(title: str, total: int, done: int) -> tuple[Progress, TaskID]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(title, total=total, completed=done)
    bar.start()
    return bar, task
