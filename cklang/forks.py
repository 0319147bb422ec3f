# SPDX-License-Identifier: MIT
"""Locks for a process that forks: a child has none of the parent's other threads.

A lock that one of them held at that moment would never be released in the child. The locks made
here are open in every child; what they guard is small tables that each use leaves complete.
"""

from __future__ import annotations

import os
import threading
from typing import Any
from weakref import WeakSet

__all__ = ["gpu_is_lost", "lock", "reentrant_lock"]

gpu_is_lost = False
"""Whether this process was forked from one that used a real GPU, which only that one can use."""

_locks: WeakSet[Any] = WeakSet()


def lock() -> threading.Lock:
    """Return a lock that is open in a forked process, whoever held it in the parent.

    Example:
        >>> from cklang import forks
        >>> with forks.lock():
        ...     pass
    """
    new = threading.Lock()
    _locks.add(new)
    return new


def reentrant_lock() -> threading.RLock:
    """Return a lock as :func:`lock` does, which one thread may take several times."""
    new = threading.RLock()
    _locks.add(new)
    return new


def _open_all() -> None:
    for each in _locks:
        each._at_fork_reinit()


os.register_at_fork(after_in_child=_open_all)
