# SPDX-License-Identifier: MIT
"""What a program pays for ``import cklang``: nothing that only building or printing needs."""

from tests.support.processes import run_python

HEAVY = ("networkx", "lark", "jinja2", "rich", "hip", "torch", "filelock")


def test_heavy_packages_are_not_imported() -> None:
    loaded = set(run_python("-c", "import sys, cklang; print(*sys.modules)").stdout.split())
    assert "numpy" in loaded
    assert loaded.isdisjoint(HEAVY)
