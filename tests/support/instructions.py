# SPDX-License-Identifier: MIT
"""What the code of a built kernel does, by kinds of instructions."""

from __future__ import annotations

from collections import Counter

from cklang.emulator.library import disassemble, text_section
from cklang.runtime.record import LaunchRecord

__all__ = ["instructions"]

_KINDS = {"matrix": ("mfma", "wmma"), "loads": ("buffer_load", "global_load")}


def instructions(launch: LaunchRecord) -> dict[str, Counter[str]]:
    """Return how often each matrix instruction and vector load stands in a kernel."""
    image = launch.artifact.code_object.read_bytes()
    names = [line.split()[0] for line in _lines(disassemble(launch.key.arch, text_section(image)))]
    return {
        kind: Counter(name for name in names if any(word in name for word in words))
        for kind, words in _KINDS.items()
    }


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]
