# SPDX-License-Identifier: MIT
"""The build hook of wheels that have the emulator and essential stencils inside.

``cklang warm --gpu all --out prebuilt`` compiles them, and ``CKLANG_PREBUILT=prebuilt python -m
build --wheel`` takes them along: such a wheel is for x86-64 Linux alone. Without the variable the
wheel has none, and is for every machine.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_TAG = "py3-none-manylinux_2_31_x86_64"
"""The libraries inside need glibc 2.31 (2020) or newer."""


class PrebuiltHook(BuildHookInterface):  # type: ignore[type-arg]
    """Takes the folder that ``CKLANG_PREBUILT`` names into a wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the folder's files to those of the wheel."""
        folder = os.environ.get("CKLANG_PREBUILT")
        if not folder or self.target_name != "wheel" or version == "editable":
            return
        path = Path(self.root, folder)
        if not (path / "stencils.ckb").is_file():
            message = f"{path} has no stencils.ckb; cklang warm --out {folder} writes such a folder"
            raise FileNotFoundError(message)
        build_data["force_include"][str(path)] = "cklang/prebuilt"
        build_data["pure_python"] = False
        build_data["tag"] = _TAG
