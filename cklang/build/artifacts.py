# SPDX-License-Identifier: MIT
"""Kernels in a store: the files of an entry, and the artifact that is made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cklang.build.store import Entry, Store
from cklang.device.artifact import Artifact
from cklang.device.resources import Resources
from cklang.errors import CkError
from cklang.families import key_from_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SOURCE = "kernel.hip.txt"
CODE = "kernel.hsaco"
HOST = "host.so"


def artifact_of(entry: Entry, *, cached: bool, steps: Mapping[str, Any]) -> Artifact:
    """Return the kernel of an entry; ``steps`` say how long those before took."""
    facts = entry.facts
    return Artifact(
        key=key_from_json(entry.record["inputs"]["key"]),
        folder=entry.folder,
        code_object=entry.file(CODE),
        host_shim=entry.file(HOST),
        source=entry.file(SOURCE),
        symbol=str(facts["symbol"]),
        schedule=str(facts["schedule"]),
        resources=Resources(**facts["resources"]),
        seconds=_critical_path(steps),
        cached=cached,
        steps=steps,
    )


def _critical_path(steps: Mapping[str, Any]) -> float:
    """Return the seconds that were waited for: stencil and host shim are built at once."""
    spent = {
        name: 0.0 if step["cached"] else float(step["seconds"]) for name, step in steps.items()
    }
    return max(spent.get("stencil", 0.0), spent.get("host", 0.0)) + spent.get("fill", 0.0)


def artifacts_in(store: Store) -> Iterator[Artifact]:
    """Yield every kernel of a store; what another version alone knows is passed over.

    That is another schema (C002, K003), or a family or a value that this version lacks (K001).
    """
    for entry in store.entries("kernel"):
        try:
            yield artifact_of(entry, cached=True, steps={})
        except CkError as problem:
            if problem.code not in ("C002", "K001", "K003"):
                raise
