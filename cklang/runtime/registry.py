# SPDX-License-Identifier: MIT
"""Named sets of kernels that calls may be served by.

A registry holds declarations: the key of a kernel, its epilogue and a priority. Building one makes
the code objects; what is built stands in the kernel cache, not here, so a registry can be exported
to JSON, imported in another process and built again, and is then equal.

There is one rule of priority, for adding and for merging: of two entries with one key the one of
higher priority stays; at equal priority the one that was there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cklang.codec import decode, expect_fields
from cklang.errors import error
from cklang.fusion.plan import epilogue_hash, epilogue_text
from cklang.ir.nodes import Function
from cklang.keys import KernelKey, Signature
from cklang.runtime.candidates import candidates
from cklang.runtime.space import Pattern, enumerate_legal

if TYPE_CHECKING:
    from cklang.runtime.parallel import BuildSummary
    from cklang.runtime.record import Resources

__all__ = ["SCHEMA_VERSION", "Kernel", "Registry"]

SCHEMA_VERSION = 1
"""Version of the JSON form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A declared kernel."""

    key: KernelKey
    epilogue: Function
    """The region that fusion made; its hash stands in the key."""
    priority: int = 0
    """Kernels of higher priority are preferred by ``first_fit``."""


class Registry:
    """Declared kernels in the order in which they were added; safe to use from several threads.

    Args:
        name: What people call it; part of its JSON form.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._kernels: dict[str, Kernel] = {}
        self._resources: dict[str, Resources] = {}
        self._lock = threading.RLock()
        self._version = 0

    @property
    def version(self) -> int:
        """A number that changes with the kernels and what is known of them; selections too."""
        return self._version

    def resources(self, key: KernelKey) -> Resources | None:
        """Return what a kernel takes of the GPU, if :meth:`build` of this registry has built it.

        The cost model takes registers and LDS from there, and estimates those of other kernels.
        """
        return self._resources.get(key.digest)

    def __repr__(self) -> str:
        return f"<cklang registry {self.name!r}: {len(self)} kernels>"

    def __len__(self) -> int:
        return len(self._kernels)

    def __iter__(self) -> Iterator[Kernel]:
        with self._lock:
            return iter(tuple(self._kernels.values()))

    def __contains__(self, key: KernelKey) -> bool:
        return key.digest in self._kernels

    def __eq__(self, other: object) -> bool:
        """Two registries are equal if they have one name and equal kernels in one order."""
        if not isinstance(other, Registry):
            return NotImplemented
        return self.name == other.name and tuple(self) == tuple(other)

    __hash__ = object.__hash__

    def add(self, key: KernelKey, epilogue: Function, *, priority: int = 0) -> bool:
        """Declare one kernel; return whether it is new or has a higher priority than before.

        Raises:
            CkValueError: K007, the epilogue is not the one of the key.
        """
        found = epilogue_hash(epilogue)
        if key.signature.epilogue != found:
            raise error("K007", label=key.label, want=key.signature.epilogue, got=found)
        return self._put(Kernel(key=key, epilogue=epilogue, priority=priority))

    def _put(self, kernel: Kernel) -> bool:
        digest = kernel.key.digest
        with self._lock:
            known = self._kernels.get(digest)
            if known is not None and known.priority >= kernel.priority:
                return False
            self._kernels[digest] = kernel
            self._version += 1
            return True

    def declare(
        self,
        signature: Signature,
        epilogue: Function,
        gpu: str,
        among: Pattern | str | None = None,
        *,
        priority: int = 0,
    ) -> int:
        """Declare every legal kernel of a set, and return how many are new.

        Args:
            signature: What is computed.
            epilogue: The epilogue of its kernels.
            gpu: The GPU: ``gfx942``.
            among: A pattern, whose ``*`` stand for all legal values; the name of a preset
                (``essential``, ``compute``...); the default preset if left out.
            priority: Of all of them.

        Raises:
            CkValueError: K001, there is no such preset; K008, no algorithm of the set is legal.
        """
        if isinstance(among, Pattern):
            algorithms: Iterable[Any] = enumerate_legal(signature, gpu, among)
        else:
            algorithms = candidates(signature, gpu, *([among] if among else []))
        keys = [KernelKey(signature, algorithm, gpu) for algorithm in algorithms]
        if not keys:
            raise error("K008", among=among, arch=gpu, signature=signature.words)
        return sum(self.add(key, epilogue, priority=priority) for key in keys)

    def remove(self, key: KernelKey) -> bool:
        """Forget a kernel; return whether it was there."""
        with self._lock:
            known = self._kernels.pop(key.digest, None) is not None
            self._version += known
            return known

    def find(self, key: KernelKey) -> Kernel | None:
        """Return the kernel of ``key``, or None."""
        return self._kernels.get(key.digest)

    def filter(self, accept: Callable[[KernelKey], bool]) -> tuple[Kernel, ...]:
        """Return the kernels whose key ``accept`` accepts, in order."""
        return tuple(kernel for kernel in self if accept(kernel.key))

    def merge(self, other: Registry) -> int:
        """Add the kernels of ``other`` with their priorities; return how many changed anything."""
        return sum(self._put(kernel) for kernel in other)

    def build(
        self, max_workers: int | None = None, executor: Executor | None = None
    ) -> BuildSummary:
        """Build every kernel that is not built, in parallel processes and with progress.

        Args:
            max_workers: Compiler processes at once (default: ``CKLANG_JOBS``, else the cores).
            executor: Runs the work instead: threads, processes or machines that share the cache.

        Returns:
            What became of each kernel; failures are in it and raise nothing. What the kernels take
            of the GPU is known from then on: see :meth:`resources`.
        """
        from cklang.runtime.parallel import build

        summary = build(tuple(self), max_workers=max_workers, executor=executor)
        found = {artifact.key.digest: artifact.resources for artifact in summary.artifacts}
        with self._lock:
            self._version += not found.items() <= self._resources.items()
            self._resources |= found
        return summary

    def to_json(self) -> dict[str, Any]:
        """Return the lossless JSON form: every field of every key, and each epilogue once."""
        kernels = tuple(self)
        epilogues = {k.key.signature.epilogue: epilogue_text(k.epilogue) for k in kernels}
        return {
            "version": SCHEMA_VERSION,
            "name": self.name,
            "epilogues": epilogues,
            "kernels": [{"key": k.key.to_json(), "priority": k.priority} for k in kernels],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Registry:
        """Return the registry that :meth:`to_json` wrote.

        Raises:
            CkValueError: K003 for another schema version, K001 and K002 for fields and values that
                are not known, K007 for an epilogue that is not the one of its key.
        """
        if data.get("version") != SCHEMA_VERSION:
            raise error("K003", what="registry", got=data.get("version"), want=SCHEMA_VERSION)
        expect_fields("registry", data, _PARTS)
        from cklang.ir.parser import parse_function

        functions = {name: parse_function(text) for name, text in data["epilogues"].items()}
        made = cls(decode(str, data["name"], "registry name"))
        for row in data["kernels"]:
            expect_fields("registry kernel", row, ("key", "priority"))
            key = KernelKey.from_json(row["key"])
            epilogue = functions.get(key.signature.epilogue)
            if epilogue is None:
                raise error("K007", label=key.label, want=key.signature.epilogue, got="none")
            made.add(key, epilogue, priority=decode(int, row["priority"], "priority"))
        return made


_PARTS = ("version", "name", "epilogues", "kernels")
