# SPDX-License-Identifier: MIT
"""Where cklang keeps files on this machine."""

from __future__ import annotations

from pathlib import Path

from cklang import knobs

__all__ = ["cache_root"]


def cache_root() -> Path:
    """Return the folder of the kernel cache: ``CKLANG_CACHE_DIR`` or the user's cache folder."""
    chosen = knobs.CACHE_DIR.get()
    if chosen is not None:
        return chosen
    import platformdirs

    return platformdirs.user_cache_path("cklang", appauthor=False)
