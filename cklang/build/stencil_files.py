# SPDX-License-Identifier: MIT
"""The files of a stencil."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from cklang.keys import AnyKey


@dataclass(frozen=True, slots=True, kw_only=True)
class StencilFiles:
    """What a stencil is made of on disk."""

    key: AnyKey
    """The key, with an open epilogue."""
    source: str
    bitcode: Path
    host_shim: Path
