# SPDX-License-Identifier: MIT
"""arch_specs: valid, complete, and the only place where a GPU's name is compared."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from cklang.arch import all_archs, arch
from cklang.errors import CkValueError

ROOT = Path(__file__).parents[2]
FILES = sorted(p for p in (ROOT / "arch_specs").glob("gfx*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_spec_fits_the_schema(path: Path) -> None:
    schema = json.loads((ROOT / "arch_specs" / "schema.json").read_text())
    data = json.loads(path.read_text())
    jsonschema.validate(data, schema)
    assert data["name"] == path.stem


def test_every_file_is_loaded_in_emulated_order() -> None:
    assert {spec.name for spec in all_archs()} == {path.stem for path in FILES}
    orders = [spec.emulated_order for spec in all_archs()]
    assert orders == sorted(set(orders))


def test_feature_suffixes_are_cut_and_unknown_names_refused() -> None:
    assert arch("gfx942:sramecc+:xnack-").name == "gfx942"
    with pytest.raises(CkValueError, match="gfx942") as caught:
        arch("gfx9")
    assert caught.value.code == "K004"


def test_no_code_compares_arch_names() -> None:
    pattern = re.compile(r"""[=!]=\s*["']gfx|["']gfx\w+["']\s*[=!]=|in\s*[({\[]["']gfx""")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in (ROOT / "cklang").rglob("*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []
