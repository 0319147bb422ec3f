# SPDX-License-Identifier: MIT
"""The imports of the package go one way: down the list of its layers."""

from pathlib import Path
from typing import Any

import pytest

from cklang import dispatch
from cklang.families import FAMILIES, PASSES, ROWS
from tests.support.layers import (
    FILES,
    GROUND,
    LAYERS,
    MACHINE,
    ROOT,
    UPWARDS,
    arrows,
    imports,
    layer_of,
    module_of,
)
from tests.support.processes import run_python


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_down(path: Path) -> None:
    layer = layer_of(module_of(path))
    for target in imports(path):
        other = layer_of(target)
        assert LAYERS.index(other) <= LAYERS.index(layer) or (layer, other) in UPWARDS, (
            f"{layer} must not import {target}"
        )


def test_no_arrow_up_is_listed_that_nobody_needs() -> None:
    assert arrows() >= UPWARDS


@pytest.mark.parametrize("layer", MACHINE)
def test_the_emulator_knows_nothing_of_the_compiler(layer: str) -> None:
    assert {target for source, target in arrows() if source == layer} <= {*GROUND, *MACHINE}


def test_the_ground_needs_the_engine_alone() -> None:
    targets = {target for source, target in arrows() if source in GROUND}
    assert targets <= {*GROUND, "engine"}


def test_every_folder_is_a_layer() -> None:
    assert _folders(ROOT) - {"errors", "emulator"} <= set(LAYERS)
    assert _folders(ROOT / "emulator") == set(MACHINE)


def _folders(root: Path) -> set[str]:
    return {p.name for p in root.iterdir() if p.is_dir() and any(p.rglob("*.py"))}


FAMILY_FOLDERS = {p.parent.name for p in (ROOT / "families").glob("*/__init__.py")}
OUTSIDE = [path for path in FILES if layer_of(module_of(path)) not in ("families", "ops")]


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_family_is_known_by_its_protocol_alone(path: Path) -> None:
    """Code outside the families finds one in a table; public functions about one are ops."""
    assert len(FAMILY_FOLDERS) >= 10
    for target in imports(path):
        parts = target.split(".")
        inside = parts[0] == "families" and len(parts) > 1 and parts[1] in FAMILY_FOLDERS
        assert not inside, f"{module_of(path)} must not import {target}"


@pytest.mark.parametrize("name", ROWS)
def test_what_is_known_of_a_family_before_it_is_imported(name: str) -> None:
    row, family = ROWS[name], FAMILIES[name]
    assert family.name == name
    assert set(row.anchors) == set(family.fusion.makers)
    assert _path(family.signature) == row.signature
    assert _path(family.algorithm) == row.algorithm
    if family.algorithm is not None:
        assert getattr(dispatch, family.algorithm.__name__) is family.algorithm
    assert set(family.fusion.passes) == {each.name for each in PASSES if each.owner == name}


def _path(part: type[Any] | None) -> str:
    name = "" if part is None else f"{part.__module__}.{part.__name__}"
    return name.removeprefix("cklang.families.")


def test_importing_the_package_imports_no_family() -> None:
    script = (
        "import sys, cklang\n"
        "print([name for name in sys.modules if name.startswith('cklang.families.')\n"
        "    and name.endswith('.family')])\n"
    )
    assert run_python("-c", script).stdout == "[]\n"
