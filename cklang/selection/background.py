# SPDX-License-Identifier: MIT
"""Kernels that a worker thread of this process builds while calls run with others."""

from __future__ import annotations

import contextvars
import os
import threading
import weakref
from queue import SimpleQueue
from typing import TYPE_CHECKING

from cklang.errors import CkError
from cklang.toolchain.log import logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from cklang.build.builder import Wanted
    from cklang.selection.registry import Registry


class _Worker:
    """One daemon thread, which builds one kernel after another; each is asked for once."""

    def __init__(self) -> None:
        self._tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._asked: set[tuple[str, str]] = set()
        self._idle = threading.Condition()
        self._waiting = 0
        self._thread: threading.Thread | None = None

    def put(self, wanted: Wanted, registry: Registry) -> None:
        """Ask for a kernel, and for new choices among the kernels of a registry afterwards."""
        key, functions = wanted
        name = key.digest, functions.digest
        with self._idle:
            if name in self._asked:
                return
            self._asked.add(name)
            self._waiting += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="cklang-tiered", daemon=True)
                self._thread.start()
        settings, owner = contextvars.copy_context(), weakref.ref(registry)
        self._tasks.put(lambda: settings.run(_build, wanted, owner))

    def wait(self, seconds: float | None) -> bool:
        """Wait until nothing is asked for any more; return whether that is so."""
        with self._idle:
            return self._idle.wait_for(lambda: self._waiting == 0, seconds)

    def _run(self) -> None:
        while True:
            task = self._tasks.get()
            try:
                task()
            except Exception:
                logger("select").exception("a kernel was not built in the background")
            with self._idle:
                self._waiting -= 1
                self._idle.notify_all()


def _build(wanted: Wanted, owner: weakref.ref[Registry]) -> None:
    from cklang.build.builder import shared_builder

    label = wanted[0].label
    try:
        shared_builder().build_all([wanted])
    except CkError as problem:
        logger("select").warning("%s was not built in the background: %s", label, problem)
        return
    logger("select").info("%s is built", label)
    registry = owner()
    if registry is not None:
        registry.forget_choices()


_worker = _Worker()


def _restart() -> None:
    """In a forked process: the thread is the parent's, and so is what it builds."""
    global _worker
    _worker = _Worker()


os.register_at_fork(after_in_child=_restart)


def build_later(wanted: Wanted, registry: Registry) -> None:
    """Build a kernel in the background; then calls with this registry choose anew.

    Builds that fail are logged, and not repeated in this process.
    """
    _worker.put(wanted, registry)


def wait(seconds: float | None = None) -> bool:
    """Wait for the kernels that are being built; return whether all are, or failed."""
    return _worker.wait(seconds)
