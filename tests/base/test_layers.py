# SPDX-License-Identifier: MIT
"""The imports of the package go one way: down the list of its layers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "cklang"

BASE = (
    "source",
    "knobs",
    "forks",
    "memo",
    "in_place",
    "optional_type",
    "types",
    "widths",
    "codec",
    "keys",
    "arch",
)
"""The modules at the top of the package, which make one layer with the errors."""

LAYERS = (
    "base",
    "toolchain",
    "emulator",
    "clock",
    "ir",
    "reference",
    "frontend",
    "fusion",
    "lowering",
    "device",
    "families",
    "build",
    "selection",
    "runtime",
    "ops",
    "autodiff",
    "torch",
    "tune",
    "hipcc",
    "testing",
    "cli",
)
"""A layer imports itself and those above it in this list."""

UPWARDS = {
    ("runtime", "ops"),
    ("runtime", "torch"),
    ("ops", "torch"),
}
"""Arrows that go up.

Methods of an op that are written in ``ops``, beside the public functions; and calls that torch
traces."""


def layer_of(module: str) -> str:
    first = module.split(".")[0]
    return "base" if first in (*BASE, "errors", "annotations") else first


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


FILES = [path for path in sorted(ROOT.rglob("*.py")) if path != ROOT / "__init__.py"]
MODULES = {module_of(path) for path in FILES}


def imports(path: Path) -> Iterator[str]:
    """Yield every cklang module that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            inside = name.removeprefix("cklang.")
            if inside == name:
                continue
            yield inside if inside in MODULES else inside.rpartition(".")[0]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_down(path: Path) -> None:
    layer = layer_of(module_of(path))
    for target in imports(path):
        other = layer_of(target)
        assert LAYERS.index(other) <= LAYERS.index(layer) or (layer, other) in UPWARDS, (
            f"{layer} must not import {target}"
        )


def test_no_arrow_up_is_listed_that_nobody_needs() -> None:
    arrows = {
        (layer_of(module_of(path)), layer_of(target)) for path in FILES for target in imports(path)
    }
    assert arrows >= UPWARDS


def test_every_folder_is_a_layer() -> None:
    folders = {p.name for p in ROOT.iterdir() if p.is_dir() and any(p.rglob("*.py"))}
    assert folders - {"errors"} <= set(LAYERS)
