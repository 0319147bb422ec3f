# SPDX-License-Identifier: MIT
"""A dictionary of limited size for what is computed once and used again."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from cklang import forks

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class BoundedMemo(Generic[Key, Value]):
    """Values by key; the oldest go when there are more than ``limit``.

    Any thread may use it. Reading takes no lock: it is a dictionary's own ``get``.

    Example:
        >>> memo = BoundedMemo(2)
        >>> for number in range(3):
        ...     memo.put(number, number * number)
        >>> memo.get(0), memo.get(2)
        (None, 4)
    """

    __slots__ = ("_lock", "_values", "get", "limit")

    get: Callable[[Key], Value | None]
    """Returns the value of a key, or None."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._values: dict[Key, Value] = {}
        self._lock = forks.lock()
        self.get = self._values.get

    def __len__(self) -> int:
        return len(self._values)

    def put(self, key: Key, value: Value) -> None:
        """Keep ``value``; whatever has been kept longest makes room."""
        with self._lock:
            if key not in self._values:
                while len(self._values) >= self.limit:
                    del self._values[next(iter(self._values))]
            self._values[key] = value

    def values(self) -> tuple[Value, ...]:
        """Return what is kept, the oldest first."""
        with self._lock:
            return tuple(self._values.values())

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()
