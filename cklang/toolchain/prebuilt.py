# SPDX-License-Identifier: MIT
"""What was compiled before: an emulator and stencils, in a wheel or in a folder of the user's.

``cklang warm --out FOLDER`` writes such a folder, and the wheel's build hook takes one along.
"""

from pathlib import Path

from cklang import knobs

EMULATOR = "emulator"
"""The folder of the emulator's library."""

STENCILS = "stencils.ckb"
"""The bundle of stencils."""


def prebuilt_folder() -> Path:
    """Return the folder of what was compiled before: ``CKLANG_PREBUILT``, else the wheel's."""
    return knobs.PREBUILT.get() or Path(__file__).parents[1] / "prebuilt"


def prebuilt(name: str) -> Path | None:
    """Return a file or folder that was compiled before; None if there is none of that name.

    Example:
        >>> prebuilt("no such thing") is None
        True
    """
    path = prebuilt_folder() / name
    return path if path.exists() else None
