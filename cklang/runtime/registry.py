# SPDX-License-Identifier: MIT
"""The kernels this process knows: by key, refilled from what earlier processes left on disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator

from cklang.keys import KernelKey
from cklang.runtime.record import Artifact

__all__ = ["Registry"]


class Registry:
    """Built kernels by the digest of their key; safe to use from several threads."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._artifacts: dict[str, Artifact] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._artifacts)

    def __iter__(self) -> Iterator[Artifact]:
        with self._lock:
            return iter(tuple(self._artifacts.values()))

    def __contains__(self, key: KernelKey) -> bool:
        return key.digest in self._artifacts

    def add(self, artifact: Artifact) -> None:
        """Add a kernel; one of the same key is replaced."""
        with self._lock:
            self._artifacts[artifact.key.digest] = artifact

    def find(self, key: KernelKey) -> Artifact | None:
        """Return the kernel of ``key``, or None."""
        return self._artifacts.get(key.digest)

    def filter(self, accept: Callable[[KernelKey], bool]) -> tuple[Artifact, ...]:
        """Return the kernels whose key ``accept`` accepts, in the order they were added."""
        return tuple(artifact for artifact in self if accept(artifact.key))

    def refill(self, artifacts: Iterable[Artifact]) -> int:
        """Add the kernels that are not known yet, and return how many that were."""
        before = len(self)
        for artifact in artifacts:
            with self._lock:
                self._artifacts.setdefault(artifact.key.digest, artifact)
        return len(self) - before
