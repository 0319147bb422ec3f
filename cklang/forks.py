# SPDX-License-Identifier: MIT
"""Locks for a process that forks: a child has none of the parent's other threads.

A lock that one of them held at that moment would never be released in the child. The locks made
here are open in every child; what they guard is small tables that each use leaves complete.
"""

import functools
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakSet

T = TypeVar("T")

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


class cached_property(functools.cached_property[T]):  # noqa: N801 - it stands for that of functools
    """``functools.cached_property``, whose lock is open in a forked process.

    Before Python 3.12 one lock guards the property in all instances of its class.

    Example:
        >>> from cklang import forks
        >>> class Tile:
        ...     @forks.cached_property
        ...     def area(self) -> int:
        ...         return 64 * 64
        >>> Tile().area
        4096
    """

    def __init__(self, func: Callable[[Any], T]) -> None:
        super().__init__(func)
        guard = getattr(self, "lock", None)
        if guard is not None:
            _locks.add(guard)


def _open_all() -> None:
    for lock in _locks:
        lock._at_fork_reinit()


os.register_at_fork(after_in_child=_open_all)
