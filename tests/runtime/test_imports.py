# SPDX-License-Identifier: MIT
"""What a program pays for ``import cklang``: nothing that only building or printing needs."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("networkx", "lark", "jinja2", "rich", "hip", "torch", "filelock")


def test_heavy_packages_are_not_imported() -> None:
    script = "import sys, cklang; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    loaded = set(done.stdout.split())
    assert "numpy" in loaded
    assert loaded.isdisjoint(HEAVY)
