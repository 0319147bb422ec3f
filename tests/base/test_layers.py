# SPDX-License-Identifier: MIT
"""The imports of the package go one way."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "cklang"

# A layer may import the layers below it. `base` is the modules at the top of the package.
BASE = {
    "codec",
    "source",
    "errors",
    "knobs",
    "types",
    "keys",
    "plain_keys",
    "attention_keys",
    "arch",
    "widths",
}
ALLOWED: dict[str, set[str]] = {
    "base": set(),
    "ir": {"base"},
    "reference": {"base", "ir"},
    "frontend": {"base", "ir"},
    "fusion": {"base", "ir", "frontend"},
    "lowering": {"base", "ir", "frontend", "fusion"},
    "tuning": {"base", "ir", "frontend", "fusion", "lowering"},
    "emulator": {
        "base",
        "runtime.integrity",
        "runtime.log",
        "runtime.paths",
        "runtime.toolchain",
    },
    "runtime": {"base", "ir", "frontend", "fusion", "lowering", "tuning", "emulator", "reference"},
    "testing": {"base", "ir", "frontend", "fusion", "lowering", "runtime", "emulator", "reference"},
    "cli": {"base", "ir", "frontend", "fusion", "lowering", "tuning", "runtime", "emulator"},
}


def layer_of(parts: tuple[str, ...]) -> str:
    return "base" if parts[0] in BASE else parts[0]


def imports(path: Path) -> set[tuple[str, ...]]:
    """Every cklang module that a file imports, anywhere in it, as parts after `cklang`."""
    found: set[tuple[str, ...]] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {tuple(n.split(".")[1:]) for n in names if n.startswith("cklang.")}
    return {parts for parts in found if parts}


FILES = [p for p in sorted(ROOT.rglob("*.py")) if p != ROOT / "__init__.py"]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_down(path: Path) -> None:
    layer = layer_of(path.relative_to(ROOT).with_suffix("").parts)
    for parts in imports(path):
        target = layer_of(parts)
        allowed = ALLOWED[layer]
        dotted = ".".join(parts[:2])
        assert target == layer or target in allowed or dotted in allowed, (
            f"{layer} must not import {'.'.join(parts)}"
        )


def test_every_folder_is_a_layer() -> None:
    folders = {p.name for p in ROOT.iterdir() if p.is_dir() and any(p.rglob("*.py"))}
    assert folders - BASE <= set(ALLOWED)
