# SPDX-License-Identifier: MIT
"""Say on stderr what a long wait is for, and how much of it is left; nothing if it is short.

A wait is announced after two seconds and again every ten, one line each. On a terminal the line
is renewed in its place and disappears at the end. Of waits inside of one another, the one that
began last speaks. ``CKLANG_LOG=error`` turns it off.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from cklang import forks, knobs
from cklang.toolchain.log import logger

Item = TypeVar("Item")

_FIRST_SECONDS = 2.0
_AGAIN_SECONDS = 10.0
_TICK_SECONDS = 0.25
_IDLE_TICKS = 8
"""How often the watching thread finds no wait before it sleeps: quick calls need not wake it."""
_WATCHER = "cklang-waits"
_MANY = 6
"""Steps; the finished ones tell how long the others take."""
_CLEAR = "\r\x1b[K"

_lock = forks.lock()
waits: list[Wait] = []
"""The waits of all threads, in the order in which they began."""
asleep = True
"""Whether nobody looks at :data:`waits`, so that who adds one calls :func:`wake`."""
_wake = threading.Event()
_last = ("", 0.0)
"""The title of the last line, and when it was written."""


def report(
    title: str,
    steps: tuple[int, int],
    elapsed: float,
    expected: float | None = None,
    running: str = "",
    unit: str = "steps",
) -> str:
    """Return the line that announces a wait.

    Args:
        title: What is waited for.
        steps: How many of its steps are done, and how many there are; 0 if it has none.
        elapsed: Seconds so far.
        expected: Seconds that all of it takes, if that is known. Otherwise, and where it takes
            longer, what is left is estimated by a quarter or more of many steps.
        running: The step that is running.
        unit: What the steps are called.

    Example:
        >>> from cklang.toolchain.progress import report
        >>> report("building 2 kernels", (4, 6), 8.0, running="stencil of gemm")
        'cklang: building 2 kernels: stencil of gemm; 4 of 6 steps done, 8 s so far, about 4 s left'
    """
    done, total = steps
    left = 0.0 if expected is None else expected - elapsed
    if left < 1 and total >= _MANY and total <= 4 * done:
        left = elapsed * (total - done) / max(done, 1)
    facts = [f"{done} of {total} {unit} done"] if total else []
    facts.append(f"{elapsed:.0f} s so far")
    if left >= 1:
        facts.append(f"about {left:.0f} s left")
    return f"cklang: {title}: {f'{running}; ' if running else ''}{', '.join(facts)}"


class Wait:
    """Something that may take long, as a ``with`` block; threads may share it.

    Args:
        title: What is waited for.
        total: How many steps it has.
        expected: Seconds that it takes, if that is known.
        count: Says how many workgroups have ended and how many there are, in the place of steps.
    """

    def __init__(
        self,
        title: str,
        total: int = 0,
        expected: float | None = None,
        count: Callable[[], tuple[int, int]] | None = None,
    ) -> None:
        self._title = title
        self._count = count
        self._total = total
        self._expected = expected
        self._done = 0
        self._running: list[str] = []
        self.shown = False
        """Whether a terminal has the line."""
        self.start = 0.0

    def __enter__(self) -> Wait:
        self.start = time.perf_counter()
        waits.append(self)
        if asleep:
            wake()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ValueError):  # in a process that was forked meanwhile
            waits.remove(self)
        if self.shown:
            self.clear()

    def clear(self) -> None:
        """Remove the line from the terminal."""
        self.shown = False
        _write(_CLEAR)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Run one of the steps."""
        start = time.perf_counter()
        with _lock:
            self._running.append(name)
            if self._total:  # a step may turn out to be needed on the way
                self._total = max(self._total, self._done + len(self._running))
        try:
            yield
        finally:
            with _lock:
                self._running.remove(name)
                self._done += 1
                done = self._done
        seconds = time.perf_counter() - start
        logger("build").info("%d of %d, %s: %.2f s", done, self._total, name, seconds)

    def over(self, items: Iterable[Item], name: Callable[[Item], str]) -> Iterator[Item]:
        """Yield items, each with a step of its name that lasts until the next one is asked for."""
        for item in items:
            with self.step(name(item)):
                yield item

    def tell(self, now: float) -> None:
        """Write the line if it is time."""
        global _last
        title, spoken = _last
        again = spoken > self.start or title == self._title
        if now < max(self.start + _FIRST_SECONDS, spoken + _AGAIN_SECONDS * again):
            return
        steps, unit = (self._done, self._total), "steps"
        if self._count is not None:
            steps, unit = self._count(), "workgroups"
        running = "".join(self._running[:1])
        line = report(self._title, steps, now - self.start, self._expected, running, unit)
        self.shown = _is_terminal()
        if self.shown:
            _write(_CLEAR + line)
        else:
            _last = self._title, now
            _write(f"{line}\n")


def wake() -> None:
    """Let somebody look at the waits; one has just begun."""
    global asleep
    with _lock:
        _wake.set()
        if asleep and not any(thread.name == _WATCHER for thread in threading.enumerate()):
            threading.Thread(target=_watch, name=_WATCHER, daemon=True).start()
        asleep = False


def _watch() -> None:
    global asleep
    idle = 0
    while True:
        time.sleep(_TICK_SECONDS)
        idle = 0 if waits else idle + 1
        with suppress(Exception):  # nobody could take it, and other waits are still to be announced
            for wait in waits[-1:]:
                wait.tell(time.perf_counter())
        if idle > _IDLE_TICKS:
            _wake.clear()
            asleep = True
            # A wait that has begun just now saw nobody asleep.
            if not waits:
                _wake.wait()
            asleep, idle = False, 0


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


def _write(text: str) -> None:
    if sys.stderr is None or knobs.LOG.get() == "error":
        return
    with suppress(OSError, ValueError):  # a stream that nobody reads any more
        sys.stderr.write(text)
        sys.stderr.flush()


def _begin_anew() -> None:
    """Forget the waits of the process from which this one was forked."""
    global asleep, _wake
    waits.clear()
    asleep, _wake = True, threading.Event()


os.register_at_fork(after_in_child=_begin_anew)
