# SPDX-License-Identifier: MIT
"""The layers of the package, and what each file imports."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2] / "cklang"

BASE = (
    "source",
    "elf",
    "knobs",
    "forks",
    "memo",
    "charts",
    "display",
    "in_place",
    "optional_type",
    "dims",
    "types",
    "widths",
    "codec",
    "keys",
    "places",
    "arch",
    "versions",
)
"""The modules at the top of the package, which make one layer with the errors."""

LAYERS = (
    "base",
    "toolchain",
    "hip",
    "engine",
    "device",
    "clock",
    "profiler",
    "debugger",
    "triton",
    "flydsl",
    "hipcc",
    "rocm",
    "ir",
    "autodiff",
    "reference",
    "frontend",
    "fusion",
    "lowering",
    "families",
    "build",
    "selection",
    "runtime",
    "ops",
    "exporting",
    "prebuilding",
    "gradients",
    "pretend",
    "torch",
    "tune",
    "testing",
    "judge",
    "cli",
)
"""A layer imports itself and those above it in this list."""

GROUND = ("base", "toolchain", "device")
"""The layers that both wings stand on: ``device`` opens a real GPU's library or the engine's."""

MACHINE = ("hip", "engine", "clock", "profiler", "debugger", "triton", "flydsl", "hipcc", "rocm")
"""The layers of the emulated GPU and the tools around it, which are the folders of ``emulator``."""

UPWARDS = {("runtime", "ops"), ("runtime", "torch"), ("ops", "torch")}
"""Arrows that go up.

Methods of an op that are written in ``ops``, beside the public functions; and calls that torch
traces."""


def layer_of(module: str) -> str:
    first, *rest = module.split(".")
    if first == "emulator":
        return rest[0] if rest else "engine"
    return "base" if first in (*BASE, "errors", "annotations") else first


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


NAMESPACES = (ROOT / "__init__.py", ROOT / "dispatch.py", ROOT / "emulator" / "__init__.py")
"""Modules that hold what users write, from anywhere in the package."""

FILES = [path for path in sorted(ROOT.rglob("*.py")) if path not in NAMESPACES]
MODULES = {module_of(path) for path in FILES} | {"emulator"}


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


@cache
def arrows() -> frozenset[tuple[str, str]]:
    """Return the pairs of layers, the first of which imports the second."""
    return frozenset(
        (layer_of(module_of(path)), layer_of(target)) for path in FILES for target in imports(path)
    )
