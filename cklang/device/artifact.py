# SPDX-License-Identifier: MIT
"""A kernel that is built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cklang.device.resources import Resources
    from cklang.keys import AnyKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A kernel that is built: its code object and its host shim on disk."""

    key: AnyKey
    folder: Path
    code_object: Path
    host_shim: Path
    source: Path
    """The generated C++ with the fill in place, for reading."""
    symbol: str
    schedule: str
    """How its instructions are ordered: the name of a :class:`~cklang.build.schedules.Schedule`."""
    resources: Resources
    seconds: float
    """How long the steps took that were not in the cache; 0.0 if all were."""
    cached: bool
    steps: Mapping[str, Any]
    """Seconds of each step (``stencil``, ``host``, ``fill``), and whether it was cached."""

    def at(self, folder: Path) -> Artifact:
        """Return the same kernel with its files in another folder."""
        moved = {
            name: folder / getattr(self, name).relative_to(self.folder)
            for name in ("code_object", "host_shim", "source")
        }
        return replace(self, folder=folder, **moved)
